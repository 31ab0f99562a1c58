"""What others wrote is shown as it stands: nothing in it moves a terminal, a spreadsheet, a browser or a CI service."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialeval
from dialeval import cli
from dialeval.checkpoints.config import CheckpointConfig
from dialeval.hub.publish import card_of
from dialeval.io.files import ProgressLines, first_line, progress_bar
from dialeval.io.harmless import (
    csv_line,
    excerpt,
    for_markdown,
    for_terminal,
    for_xml,
    json_text,
    one_line,
    parts_of,
    without_keys,
    without_secrets,
)
from dialeval.io.tables import Code, Items, Table, to_markdown, to_text
from dialeval.reports.plots.figures import new_grid, save
from dialeval.systems.gate_outcome import error_as_junit, error_as_markdown
from dialeval.systems.ranking_outcome import Ranking, Standing
from shell import invoke

CONTROLS = "\x00\x07\x08\x0b\x1b[2J\x1b]0;title\x07\x7f\x9b2J\u202e\ufffe\r"
#: What a Markdown page must not make of a row.
LIVE = ["![x](http://a/b.png)", "<img src=x onerror=y>", "[a](javascript:b)", "[a][b]", "@somebody", "https://x.y/z"]
LIVE += ["www.x.y", "_www.x.y", "é_WWW.x.y", "GH-12"]


@given(st.text())
def test_a_line_of_csv_is_read_as_the_row_that_it_is(text: str) -> None:
    line = csv_line(["a", text.replace("\x00", ""), 1.5])
    (row,) = csv.reader(io.StringIO(line, newline=""))
    assert row[0] == "a"
    assert row[1].removeprefix("'") == text.replace("\x00", "").removeprefix("'")


@pytest.mark.parametrize("cell", ["=1", "\t=1", "＝1", "\r=HYPERLINK(1)", "@a", "\u200b=1", "\ufeff+1"])
def test_a_spreadsheet_computes_no_cell(cell: str) -> None:
    assert next(csv.reader(io.StringIO(csv_line([cell]), newline="")))[0] == f"'{cell}"


@given(st.text(alphabet=st.characters()) | st.just(CONTROLS))
def test_xml_is_xml_whatever_a_text_holds(text: str) -> None:
    read = ElementTree.fromstring(f'<a b="{for_xml(text)}">{for_xml(text)}</a>')
    assert read.text is None or read.text.isprintable() or set(read.text) & set("\n\t")
    ElementTree.fromstring(error_as_junit(text).partition("\n")[2])


def test_a_terminal_is_told_nothing() -> None:
    line = json_text({CONTROLS: [CONTROLS, "é 日本 👩\u200d🚀"]})
    assert json.loads(line) == {CONTROLS: [CONTROLS, "é 日本 👩\u200d🚀"]}
    assert line.strip().replace("\u200d", "").replace("\ufffe", "").isprintable()
    assert "é 日本" in line
    assert one_line(CONTROLS).isprintable()
    assert for_terminal(f"a\n\t{CONTROLS}").replace("\n", "").replace("\t", "").isprintable()
    shown = to_text([f"of {CONTROLS}", Table([f"x{CONTROLS}"], [[f"y{CONTROLS}"]], title=f"z{CONTROLS}")])
    assert shown.replace("\n", "").isprintable()


@pytest.mark.parametrize("text", LIVE)
def test_markdown_shows_a_row_and_follows_nothing(text: str) -> None:
    pages = [to_markdown([f"a {text}", Table([text], [[text]]), Items([text])]), error_as_markdown(text)]
    assert not [page for page in (*pages, for_markdown(text)) if text in page]


def test_no_text_ends_the_code_that_it_stands_in() -> None:
    page = to_markdown([Code(f"a ``` b\n```\n![x](http://a/b.png) ```` {CONTROLS}")])
    first, inside, last, *rest = page.splitlines()
    assert (first, rest) == (last, [])
    assert len(first) > 4
    assert first not in inside


@pytest.mark.parametrize("text", [*LIVE, CONTROLS, "`````", "a\n---\nb: c"])
def test_what_a_checkpoint_says_of_itself_is_not_live(text: str, tmp_path: Path) -> None:
    """Neither on the card that somebody publishes it with, nor on the terminal that it is shown on."""
    training = {
        "corpora": [text], "hardware": text, "command": text, "recipe": {text: text}, "validation": {text: text},
        "stages": [{"name": text, "steps": 1, "steps_run": 1, "hours": 1.0, "seen": {text: 1}}],
        "rated_rows": {text: 1},
    }  # fmt: skip
    config = CheckpointConfig("deb", "mine", training=training, versions={text: text})
    card = card_of(config, tmp_path)
    assert text not in re.sub(r"^```.*?^```$", "", card, flags=re.DOTALL | re.MULTILINE)
    assert card.count("```") % 2 == 0
    (tmp_path / "config.json").write_text(config.to_json(), "utf-8")
    shown = invoke("info", tmp_path)
    assert shown.output.replace("\n", "").isprintable()


def test_names_in_bars_and_warnings_are_names(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar(f"[bold]{CONTROLS}", 10_000, shown=True) as advance:
        advance(1)
    ProgressLines(one_line(CONTROLS), first=0.0).reach(1, 2, 0)
    assert cli._in_a_sentence(f"a{CONTROLS}b").strip().isprintable()
    assert capsys.readouterr().err.replace("\n", "").isprintable()


@pytest.mark.parametrize("name", ["$\\foo$", "$x", "a$b$c$", "$\\frac{$"])
def test_the_dollars_of_a_name_are_no_formula(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figure, (panel,) = new_grid(1, 3, 2)
    panel.set_title(name)
    panel.barh([name], [1.0], label=name)
    panel.legend()
    assert save(figure, tmp_path / "picture", ("png", "svg"))


def test_no_bar_or_backtick_opens_a_cell() -> None:
    row = to_markdown([Table(["a"], [["\\|`x` | ` ![p](http://q) `"]])]).splitlines()[2]
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 2
    assert "![p](" not in row


def test_a_system_with_codes_in_its_name_ranks_as_others_do() -> None:
    systems = [f"a{CONTROLS}\nerror: fake ![x](http://y)", "b"]
    standings = [Standing("judge", name, 1, 0.5, 0.4, 0.6, None, 0.5, 9, 9) for name in systems]
    ranking = Ranking(tuple(standings), (), 0.95, {})
    assert ranking.sentence("judge").isprintable()
    assert "![x](" not in ranking.to_markdown()
    assert "\x1b" not in str(ranking)


def test_tokens_are_masked_in_what_libraries_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_abcdefghijkl")
    assert first_line(ValueError("no hf_abcdefghijkl\nmore")) == "no ***"
    assert "abcdefgh" not in first_line(ValueError("no hf_abc\n  defghijkl"))
    assert without_secrets("take EMPTY or none", ["EMPTY"]) == "take EMPTY or none"
    assert len(excerpt("x" * 10_000)) == 200


def test_what_libraries_log_under_the_command_is_masked_and_moves_nothing() -> None:
    text = f"no hf_abcdefghijkl {CONTROLS}"
    code = f"import logging, sys; from dialeval import cli\ntry: cli.main()\nfinally: logging.error('%s', {text!r})"
    done = subprocess.run(
        [sys.executable, "-c", code, "--version"], env={**os.environ, "HF_TOKEN": "hf_abcdefghijkl"},
        capture_output=True, check=True,
    )  # fmt: skip
    shown = done.stderr.decode().strip()
    assert shown.isprintable()
    assert "no *** " in shown


@pytest.mark.parametrize(
    "text",
    [
        "The model `gpt-4o-2024-11-20` does not exist or you do not have access to it.",
        "there is no meta-llama/Meta-Llama-3.1-405B-Instruct-FP8, claude-opus-4-1-20250805 or o4-mini-2025-04-16",
        "mistral-7b-instruct-v0.2.Q4_K_M.gguf is not llama-v3p1-405b-instruct (fp_44709d6fcb)",
        "However, you requested 8392 tokens (8192 in the messages, 200 in the completion): 429, 1.4s.",
        "[{'loc': ['body', 'messages', 0, 'content'], 'msg': 'BadRequestError', 'code': 400}]",
        '{"appropriateness":4,"content":3.5,"grammar":4.333333333333333,"relevance":2}',
        "http://192.168.100.100:11434/v1/chat/completions",
        "1. It is on topic (4/5). 2. I don't know, e.g. 3 of 5. A) yes B) no",
        "这个回答很好5分，因为它回答了问题。",
        "Die Antwort ist gut, z. B. weil sie passt; à bientôt, déjà vu.",
        "",
    ],
)
def test_what_looks_like_no_key_is_shown(text: str) -> None:
    assert without_keys(text) == text


def test_what_was_sent_may_be_shown() -> None:
    name = "a1B2c3D4e5F6g7H8i9J0"
    assert without_keys(f"no model {name}, sorry") == "no model *** sorry"
    assert without_keys(f"no model {name}, sorry", parts_of(f"org/{name}")) == f"no model {name}, sorry"


@given(st.text(), st.text())
def test_a_masked_text_is_masked_whatever_stands_around_it(before: str, after: str) -> None:
    assert "a1B2c3D4e5F6g7H8i9J0" not in without_keys(f"{before} a1B2c3D4e5F6g7H8i9J0 {after}")


def test_everything_that_the_command_prints_goes_one_way() -> None:
    package = Path(dialeval.__file__).parent
    printing = re.compile(r"\btyper\.s?echo\(|(?<![\w.])print\(|Console\(")
    lines = {
        f"{path.relative_to(package).as_posix()}: {line.strip()}"
        for path in package.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if printing.search(line) and not re.match(r"\s*(>>>|#|\$|HF_EVALUATE|print\(model)", line)
    }
    places = {line.partition(":")[0] for line in lines}
    assert places <= {
        "cli/__init__.py", "cli/options.py", "cli/info.py", "io/tables.py", "io/files.py", "reports/output.py",
    }, sorted(lines)  # fmt: skip
