"""The page's view of whole conversations, and the judge's aspects and reasons where it scores a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gradio")

from space_server import SPACE  # puts the page's modules within reach

# isort: split
import dialogue
import file_report
import file_rows
import markup
import score_file
from limits import MAX_CALL_TURNS, Refused

from dialeval import load, registry
from dialeval.evaluate_module import loaded
from rated_rows import rated, small_judge

TURNS = ["hello there", "do you like fish do you like fish", "what? <b>stop</b>", "my dog is fine", "great, thanks!"]
#: The side that speaks second is judged.
SPEAKERS = ["user", "bot", "user", "bot", "user"]


@pytest.fixture(autouse=True)
def _judge(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    checkpoint = small_judge(tiny_encoder, tmp_path_factory.mktemp("judge") / "checkpoint")
    with pytest.MonkeyPatch.context() as changed:
        entry = registry.RegisteredMetric(registry.REGISTRY["judge"].target, {"checkpoint": str(checkpoint)})
        changed.setitem(registry.REGISTRY, "judge", entry)
        changed.setattr("dialeval.registry.embedded_checkpoints", lambda: ["judge-minilm", "cmn-minilm"])
        loaded.cache_clear()
        yield
        loaded.cache_clear()


def test_a_line_is_a_turn_and_may_name_its_speaker() -> None:
    assert dialogue.read_lines("hi\n\n  hello \nfine", False) == (["hi", "hello", "fine"], ["user", "bot", "user"])
    assert dialogue.read_lines("hi\nhello\nfine", True)[1] == ["bot", "user", "bot"]
    named = "Anna: hi\nAnna: are you there?\nBo: yes: here"
    assert dialogue.read_lines(named, False) == (["hi", "are you there?", "yes: here"], ["user", "user", "bot"])
    assert dialogue.read_lines(named, True)[1] == ["bot", "bot", "user"]
    # One line without a name, or a third name: then the colons belong to what is said.
    for lines in ("Anna: hi\nhello", "Anna: hi\nBo: hello\nCy: hey"):
        turns, speakers = dialogue.read_lines(lines, False)
        assert turns == lines.splitlines()
        assert speakers == ["user", "bot", "user"][: len(turns)]


def test_a_conversation_is_judged_as_the_library_does() -> None:
    found = dialogue.judged(TURNS, SPEAKERS, ["judge"])
    own = load("judge").score_dialogues([TURNS], speakers=[SPEAKERS])
    text = found.to_dict()["metrics"]["judge"]
    assert text["value"] == own.values[0]
    assert text["reasons"] == list(own.reasons)
    assert text["intervals"] == own.to_dict()["intervals"][0:1]
    assert text["aspects"] == own.to_dict()["aspects"]
    # Without names the second to speak is judged, too; the other side has another value.
    assert dialogue.judged(TURNS, [], ["judge"]).scores["judge"].values == pytest.approx(own.values)
    turned = ["bot" if who == "user" else "user" for who in SPEAKERS]
    assert dialogue.judged(TURNS, turned, ["judge"]).scores["judge"].values[0] != own.values[0]
    shown = dialogue.rendered(found)
    assert shown.count("The judged side") == 2
    assert shown.count("The other side</b>") == 3
    assert f"<b>Why</b>: {markup.text(own.explain(0), 600)}" in shown
    assert markup.number(own.values[0]) in shown
    assert shown.count("<meter") == len(own.aspects)
    assert "one side of each dialogue" in shown
    assert "<b>stop" not in shown


@pytest.mark.parametrize(
    ("turns", "speakers", "metrics", "message"),
    [
        (["hi"], [], ["judge"], "at least two turns"),
        (["hi", " "], [], ["judge"], "turn 2 is empty"),
        (["hi", "ho"], ["a"], ["judge"], "1 entries for 2 turns"),
        (["hi", "ho"], ["bot", "system"], ["judge"], "could both be the one to judge"),
        (["hi"] * (MAX_CALL_TURNS + 1), [], ["judge"], f"this page takes {MAX_CALL_TURNS}"),
        (["hi", "ho"], [], ["fbd"], "there is no metric 'fbd'"),
        (["hi", "ho"], [], [], "no metric is chosen"),
        ("hi", [], ["judge"], "pass a list of strings"),
    ],
)
def test_what_is_no_conversation_is_refused(turns: Any, speakers: Any, metrics: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dialogue.judged(turns, speakers, metrics)


def test_metrics_that_need_a_reference_are_left_out() -> None:
    found = dialogue.judged(TURNS, SPEAKERS, ["cmn", "judge"])
    assert list(found.scores) == ["judge"]
    assert found.notes == ["CMN compares with references, which a conversation does not have."]
    with pytest.raises(Refused):
        dialogue.judged(*dialogue.read_lines("", False), ["judge"])


def test_a_file_is_reported_with_aspects_and_reasons(tmp_path: Path) -> None:
    rows = [{key: row[key] for key in ("context", "response", "facts")} for row in rated(40)]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    scored = score_file.score_rows(file_rows.read_rows(str(file)), ["judge"], tmp_path, lambda *_: None)
    columns = {key: [row[key] for row in rows] for key in ("context", "response", "facts")}
    own = load("judge").score(columns["response"], columns["context"], facts=columns["facts"])
    written = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert [row["judge.why"] for row in written] == list(own.reasons)
    assert [row["judge.uses_facts"] for row in written] == pytest.approx(own.aspects["uses_facts"])
    assert [row["judge.low"] for row in written] == pytest.approx(own.interval[:, 0])  # type: ignore[index]
    shown = file_report.report(scored)
    lowest = own.values.argsort(kind="stable")[:5]
    table = shown.split("The lowest rows, and why")[-1]
    places = [table.index(markup.text(own.reasons[at], 400)) for at in lowest]
    assert places[0] == min(places)
    assert markup.number(own.values[lowest[0]]) in table
    assert "uses facts" in shown
    assert f'value="{own.aspects["uses_facts"].mean():.3f}"' in shown
    assert "reaction" not in shown.split("The lowest rows")[0].split("What JUDGE sees")[1]


def test_the_page_has_the_tab() -> None:
    assert (SPACE / "dialogue_page.py").is_file()
    import app

    shown = json.dumps(app.page.get_config_file(), default=str)
    for name in ("Conversation", "dialogue-lines", "judge-dialogue", "dialogue-result"):
        assert name in shown
