"""What the side-by-side page is made of, piece by piece and without a server."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import xml.etree.ElementTree as ElementTree
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("gradio")

from space_server import ROOT, SPACE  # puts the page's modules within reach

# isort: split
import charts
import compare
import file_report
import file_rows
import limits
import links
import markup
import models
import score_file
import trust
from limits import BodyLimit, Refused

from dialeval import load, registry
from dialeval.evaluate_module import loaded
from dialeval.exchange import Exchange
from dialeval.metric import Level
from dialeval.publish import make_uploads
from dialeval.scores import Scores, Signature
from dialeval.scoring.summary import Summary
from dialeval.weights.find import embedded_checkpoints
from examples import EXAMPLES
from small_checkpoints import small_checkpoint


@given(st.text())
def test_shown_text_is_text_and_nothing_else(words: str) -> None:
    shown = markup.text(words, 10_000)
    inner = re.fullmatch(r"<bdi>(.*)</bdi>", shown, re.DOTALL)
    assert inner is not None
    assert not set("<>\"'") & set(inner[1])
    assert "\x00" not in shown
    shown.encode("utf-8")


def test_shown_text_is_short_and_keeps_its_direction() -> None:
    assert markup.text("a" * 200, 5) == "<bdi>aaaa…</bdi>"
    assert markup.number(-0.25) == "−0.250"
    assert (markup.share(0.0), markup.share(0.004), markup.share(0.626)) == ("0%", "&lt;1%", "63%")
    assert markup.number(float("nan")) == markup.share(None) == "–"


def test_control_characters_are_taken_out_and_counted() -> None:
    assert limits.cleaned("a\x00b\x1b[1mc\td\ne\x85") == ("ab[1mc\td\ne", 3)
    with pytest.raises(Refused, match="turn 2 has 5,001 characters"):
        limits.taken_all("turn", "turns", ["a", "b" * 5_001], 9)


def test_the_best_value() -> None:
    assert models.best_of([1.0, 3.0, 3.0], higher_is_better=True) == {1, 2}
    assert models.best_of([1.0, float("nan"), 3.0], higher_is_better=False) == {0}
    assert models.best_of([1.0], higher_is_better=True) == models.best_of([], higher_is_better=True) == set()


def test_what_is_offered_follows_the_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"density", "fbd", "prd"} <= set(models.ready())
    variants = {"density_classifier"}  # another rule of a checkpoint that is there
    assert set(models.ready()) - {"fbd", "prd"} - variants == {name.split("-")[0] for name in embedded_checkpoints()}
    assert models.ready(Level.SYSTEM) == ["fbd", "prd"]
    monkeypatch.setattr(
        "dialeval.registry.embedded_checkpoints", lambda: ["density-minilm", "cmn-minilm", "deb-minilm"]
    )
    assert models.ready(Level.TURN) == ["density", "deb", "cmn", "density_classifier"]
    assert models.first_choice(models.ready(Level.TURN)) == ["density", "deb", "cmn"]
    assert models.info_of("density_classifier").title == "DENSITY classifier"
    monkeypatch.setattr("dialeval.registry.embedded_checkpoints", lambda: [])
    assert models.ready() == ["fbd", "prd"]


def test_the_examples_are_within_the_limits() -> None:
    for example in EXAMPLES.values():
        assert 1 <= len(example.turns) <= limits.MAX_TURNS
        assert 2 <= len(example.replies) <= limits.MAX_REPLIES


def test_a_systems_mean_and_interval() -> None:
    exchanges = [Exchange((f"context {at // 2}",), "reply", system="ab"[at % 2]) for at in range(8)]
    scored = score_file.Scored(exchanges, Summary.begin("turn", {}))
    scored.columns["density"] = [1.0, 5.0, 2.0, 5.0, None, 5.0, 6.0, 5.0]
    mean, low, high, count = scored.mean_of("density", "a")
    assert (mean, count) == (3.0, 4)
    # Of four contexts, one without a value: the resampled means lie between the least and the greatest value.
    assert 1.0 <= low < 3.0 < high <= 6.0
    assert scored.mean_of("density", "b") == (5.0, 5.0, 5.0, 4)
    alone = score_file.Scored(exchanges[:1], Summary.begin("turn", {}), {"density": [1.0]})
    assert np.isnan(alone.mean_of("density", "a")[1])
    nothing = score_file.Scored(exchanges[:2], Summary.begin("turn", {}), {"density": [None, None]})
    assert np.isnan(nothing.mean_of("density", "a")[:3]).all()


@pytest.fixture
def four_metrics(tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """As if all four metrics of replies had an embedded checkpoint; small ones stand in for them."""
    names = ["density", "deb", "cmn", "quantidce"]
    for name in names:
        checkpoint = small_checkpoint(name, tiny_encoder, tmp_path / name)
        entry = registry.REGISTRY[name]
        monkeypatch.setitem(
            registry.REGISTRY, name, registry.RegisteredMetric(entry.target, {"checkpoint": str(checkpoint)})
        )
    monkeypatch.setattr("dialeval.registry.embedded_checkpoints", lambda: [f"{name}-minilm" for name in names])
    loaded.cache_clear()
    yield names
    loaded.cache_clear()


@pytest.mark.slow
def test_four_metrics_side_by_side(four_metrics: list[str]) -> None:
    turns, replies = ["how are you", "fine thanks"], ["what do you like to eat", "dog cat dog"]
    found = compare.compared(turns, replies, "shall we go for a walk", four_metrics)
    assert list(found.scores) == four_metrics
    for name in four_metrics:
        own = load(name).score(replies, [turns] * 2, ["shall we go for a walk"] * 2)
        assert found.scores[name].values == pytest.approx(own.values)
        assert found.best(name) == {int(np.argmax(own.values))}
        assert found.percentiles[name] == pytest.approx(load(name).rescale(own.values, "human_percentile"))
    assert len(found.signatures.splitlines()) == 4
    shown = compare.rendered(found)
    assert shown.count("<tr>") == 5
    assert shown.count('class="order"') == 4
    assert len(re.findall(r"\d+%", "".join(ElementTree.fromstring(compare.chart(found)[22:-9]).itertext()))) >= 8


def test_aspects_of_a_file_are_in_its_downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.REGISTRY, "density", registry.RegisteredMetric("overlap_metric:Faceted"))
    monkeypatch.setattr(score_file, "ready", lambda: ["density"])
    loaded.cache_clear()
    try:
        rows = tmp_path / "rows.jsonl"
        rows.write_text(json.dumps({"context": ["a b"], "response": "b c", "following": "oh well"}) + "\n")
        found = score_file.score_rows(file_rows.read_rows(str(rows)), ["density"], tmp_path, lambda *_: None)
        (row,) = map(json.loads, (tmp_path / "scores.jsonl").read_text().splitlines())
    finally:
        loaded.cache_clear()
    assert (row["density"], row["density.words"], row["density.reaction"]) == (pytest.approx(1 / 3), 2, 2)
    assert list(found.columns) == ["density"]
    assert "1 rows scored" in file_report.report(found)


def test_a_metric_that_lacks_a_reference_says_so_and_the_others_score(four_metrics: list[str]) -> None:
    found = compare.compared(["how are you"], ["fine thanks"], " ", four_metrics)
    assert list(found.scores) == ["density", "deb", "quantidce"]
    assert found.notes == ["CMN compares with a reference, and there is none; write one to see its value."]
    alone = compare.compared(["how are you"], ["fine thanks"], "", ["cmn"])
    assert "write one to see its value" in compare.rendered(alone)
    assert compare.chart(alone) == alone.signatures == ""
    assert found.best("deb") == set()


def test_overlapping_intervals_are_not_an_order() -> None:
    said = file_report._unsettled({1}, [(0.0, 0.2), (0.1, 0.3), (0.4, 0.5)], ["a<b", "c", "d"])
    assert "overlaps with that of a&lt;b: which is better stays open" in said
    assert file_report._unsettled({1}, [(0.0, 0.1), (0.2, 0.3)], ["a", "b"]) == ""
    assert file_report._unsettled({0}, [(float("nan"), float("nan")), (0.2, 0.3)], ["a", "b"]) == ""
    assert file_report._unsettled(set(), [(0.2, 0.3)], ["a"]) == ""
    many = file_report._unsettled({0}, [(0.0, 1.0)] * 9, [str(at) for at in range(9)])
    assert "1, 2, 3, 4, 5 and 3 more" in many


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rows.txt", "a", "the page reads .jsonl, .ndjson"),
        ("rows.jsonl", "", "rows.jsonl holds no rows"),
        (
            "rows.jsonl",
            '{"context": ["a"], "response": "' + "b" * 5_001 + '"}',
            r"row 0 \(rows.jsonl, line 1\): response",
        ),
        ("rows.jsonl", '{"context": ["a"], "response": "b"}\n' * 2_001, "more than 2,000 rows"),
        ("rows.jsonl", "a" * 5_000_001, "larger than 5 MB"),
        ("rows.csv", "context,zzz\na,b\n", "rows.csv: column 'response' is missing"),
        ("rows.csv", 'context,response\n"a\n', r"a quote left open|not CSV"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(Refused, match=message) as refused:
        file_rows.read_rows(str(tmp_path / name))
    assert str(tmp_path) not in str(refused.value)


def test_systems_are_told_apart_by_paired_tests_over_contexts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two systems whose intervals overlap, and of which one is better on every context."""
    monkeypatch.setitem(registry.REGISTRY, "density", registry.RegisteredMetric("overlap_metric:Overlap"))
    monkeypatch.setattr(score_file, "ready", lambda: ["density"])
    loaded.cache_clear()
    lines = []
    for at in range(20):
        words = [f"w{at}{letter}" for letter in "abcdefgh"]
        for system, more in (("good", 2), ("bad", 1)):
            reply = " ".join(words[: at % 7 + more])
            lines.append({"context": [" ".join(words)], "response": reply, "system": system})
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    try:
        rows = file_rows.read_rows(str(path))
        found = score_file.score_rows(rows, ["density"], tmp_path, lambda *_: None)
        shown = re.sub(r"<[^>]*>", " ", file_report.report(found))
        (one,) = [
            system for system in ("good",) if found.mean_of("density", system)[1] < found.mean_of("density", "bad")[2]
        ]
    finally:
        loaded.cache_clear()
    assert one == "good"  # the intervals overlap
    assert "Overlap: good is best." in shown or "DENSITY: good is best." in shown
    assert re.search(r"good +bad .* told apart", shown)
    assert "stays open" not in shown


def test_chat_logs_and_columns_of_other_names(tmp_path: Path) -> None:
    chat = tmp_path / "log.jsonl"
    said = [("user", "Hi!"), ("assistant", "Hello."), ("user", "And you?"), ("assistant", "Fine.")]
    chat.write_text(json.dumps({"messages": [{"role": role, "content": text} for role, text in said]}) + "\n")
    assert [row.response for _, row in file_rows.read_rows(str(chat))] == ["Hello.", "Fine."]
    assert [row.response for _, row in file_rows.read_rows(str(chat), judge_role="user")] == ["And you?"]
    assert file_rows.columns_in(str(chat)) == ["messages"]
    table = tmp_path / "rows.csv"
    table.write_text("history,reply\na __eou__ b,c\n")
    assert file_rows.columns_in(str(table)) == ["history", "reply"]
    (row,) = (row for _, row in file_rows.read_rows(str(table), columns={"context": "history", "response": "reply"}))
    assert (row.context, row.response) == (("a", "b"), "c")
    for odd in ("", "[]", "{", "\x00"):
        chat.write_text(odd)
        assert file_rows.columns_in(str(chat)) == []


def test_the_sample_file_can_be_scored() -> None:
    rows = file_rows.read_rows(str(SPACE / "sample.jsonl"), models.needs_of(["cmn", "fbd"]))
    assert {row.system for _, row in rows} == {"attentive", "dull"}


@given(st.lists(st.text(max_size=40), max_size=12), st.lists(st.text(max_size=40), max_size=6), st.text(max_size=40))
def test_a_link_gives_back_what_was_put_in(turns: list[str], replies: list[str], reference: str) -> None:
    kept = [[limits.cleaned(one.encode("utf-8", "replace").decode())[0] for one in texts]
            for texts in (turns, replies, [reference])]  # fmt: skip
    packed = links.written(turns, replies, reference, ["judge"]).removeprefix("?compare=")
    assert links.read(packed) == (kept[0] or [""], kept[1] or [""], kept[2][0], ["judge"])


def test_links_that_are_no_links_are_refused() -> None:
    with pytest.raises(Refused, match="too long for a link"):
        links.written([str(np.random.default_rng(at).integers(0, 9, 900)) for at in range(12)], [], "", [])
    bomb = base64.urlsafe_b64encode(zlib.compress(b"[" * 50_000_000)).decode()
    many = links.written(["a"] * 13, [], "", []).removeprefix("?compare=")
    for packed, message in (
        ("", "damaged"),
        ("%%%", "damaged"),
        ("eJw", "damaged"),
        (bomb, "damaged"),
        (many, "13 turns"),
    ):
        with pytest.raises(Refused, match=message):
            links.read(packed)


def test_figures_hold_names_as_text() -> None:
    """Names may be mathematics to matplotlib, markup to a browser, or what a legend hides."""
    names = ("$\\frac{", "<b>&", "_hidden", "\x1b", "a" * 99)
    scores = Scores(
        "prd",
        np.linspace(0, 1, 5),
        0.5,
        Signature(),
        True,
        ids=names,
        details={"precision": np.eye(5), "recall": np.eye(5)},
    )
    drawn = charts.curves(scores) + charts.spread({"DENSITY": [1.0, 2.0, 2.0, 4.0, 4.5]}, names)
    for figure in re.findall(r"<svg.*?</svg>", drawn, re.DOTALL):
        shown = "".join(ElementTree.fromstring(figure).itertext())
        for text in ("$\\frac{", "<b>&", "_hidden", "aaa…"):
            assert text in shown
        assert "currentColor" in figure
    assert "<b>" not in drawn


def test_bars_of_replies() -> None:
    drawn = charts.percentiles({"DENSITY": [0.25, 1.0], "DEB": [0.0, 0.5]}, ["Reply 1", "Reply 2"])
    assert all(shown in drawn for shown in ("25%", "100%", "DENSITY", "DEB", "Reply 2", 'role="img"'))


def row(**changes: Any) -> dict[str, Any]:
    return {
        **{"metric": "density", "benchmark": "toy", "protocol": "standard", "level": "turn", "aspect": "Overall"},
        **{"statistic": "spearman", "value": 0.5, "low": 0.25, "high": 0.75, "n": 1200, "ceiling": 0.625},
        **{"contaminated": False, "in_best_group": False},
        **changes,
    }


def test_the_board_ranks_and_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (
        row(metric="seen", value=0.9, contaminated=True, in_best_group=None),
        row(metric="<i>none", value=None, low=None, high=None),
        row(in_best_group=True),
        row(metric="other", statistic="pearson"),
    )
    monkeypatch.setattr(trust, "results", lambda: rows)
    board = trust._board("all", "all", "spearman")
    assert re.findall(r'<th scope="row"><bdi>(.*?)</bdi>', board) == ["seen", "density", "&lt;i&gt;none"]
    assert board.count("†") == 1
    assert "†" in board.split("density")[0]
    assert '<span class="best">0.500</span> 0.250 to 0.750 1,200' in " ".join(
        re.sub(r"</?(div|td)[^>]*>", " ", board).split()
    )
    assert "One person against the others: 0.625." in board
    assert "Nothing was measured" in trust._board("toy", "system", "spearman")
    monkeypatch.setattr(trust, "results", lambda: ())
    assert "there are no results beside this page" in trust._board("all", "all", "spearman")


def test_published_results_stand_beside_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plots").mkdir()
    for name in ("agreement.jsonl", "run.json", "plots/forest_toy.png", "plots/forest_toy.svg"):
        (tmp_path / name).write_text(json.dumps(row()))
    (tmp_path / "work").mkdir()
    page, module = make_uploads([SPACE, ROOT / "metrics" / "density"], "ann", tmp_path / "work", results=tmp_path)
    files = {path.relative_to(page.folder).as_posix() for path in page.files}
    assert {name for name in files if "/" in name} == {"results/agreement.jsonl", "results/plots/forest_toy.png"}
    assert {"app.py", "README.md", "requirements.txt", "style.css"} <= files
    assert not (module.folder / "results").exists()
    monkeypatch.setattr(trust, "_HERE", tmp_path / "nowhere")
    assert trust.results_folder() is None
    monkeypatch.setattr(trust, "_HERE", page.folder)
    assert trust.results_folder() == page.folder / "results"


def test_a_body_without_a_length_ends_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_CALL_BYTES", 10)
    got: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        got.extend([(await receive())["type"] for _ in range(3)])

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"12345", "more_body": True}

    async def send(message: Any) -> None:
        got.append(message.get("status", "body"))

    asyncio.run(BodyLimit(app)({"type": "http", "headers": []}, receive, send))
    assert got == ["http.request", "http.request", "http.disconnect", 413, "body"]
    got.clear()
    asyncio.run(BodyLimit(app)({"type": "http", "headers": [(b"content-length", b"11")]}, receive, send))
    assert got == [413, "body"]


def test_the_judge_tells_aspects_and_reasons(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = small_checkpoint("judge", tiny_encoder, tmp_path / "judge")
    entry = registry.RegisteredMetric(registry.REGISTRY["judge"].target, {"checkpoint": str(checkpoint)})
    monkeypatch.setitem(registry.REGISTRY, "judge", entry)
    monkeypatch.setattr("dialeval.registry.embedded_checkpoints", lambda: ["judge-minilm"])
    loaded.cache_clear()
    try:
        replies = ["dog <b>cat</b> dog <b>cat</b> dog", "fine thanks"]
        found = compare.compared(["how are you"], replies, "", ["judge"])
        own = load("judge").score(replies, [["how are you"]] * 2)
        text = found.to_dict()["metrics"]["judge"]
        assert text["reasons"] == list(own.reasons)
        assert text["aspects"]["reaction"] == [None, None]
        shown = compare.rendered(found)
        assert "What JUDGE sees in each reply" in shown
        # Only aspects that there is something to say about: no facts and no following turn were given.
        assert shown.count("<meter") == 2 * 4
        assert "not repetitive" in shown
        assert "reaction" not in shown.split("What the numbers mean")[0]
        for place, why in enumerate(own.reasons, start=1):
            assert f"<b>Reply {place}</b>: {markup.text(why, 400)}" in shown
        assert "<b>cat" not in shown
    finally:
        loaded.cache_clear()
