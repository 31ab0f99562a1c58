"""Shared text: what counts as such, and that no recipe trains on a benchmark that it does not declare."""

import importlib
import json
import os
import random
from pathlib import Path

import pytest

from corpora.overlap import Index, signs_of, words
from corpora.recount import Recount, merged
from dialeval import benchmarks
from dialeval.checkpoints.config import CheckpointConfig
from dialeval.checkpoints.find import WEIGHTS, embedded_checkpoints

ROOT = Path(__file__).resolve().parents[2]
MIRROR = Path(os.environ.get("DIALEVAL_MIRROR") or ROOT.parent / "shared" / "data" / "raw")
CORPORA = Path(os.environ.get("DIALEVAL_CORPORA") or ROOT.parent / "shared" / "data" / "corpora")


def words_from(first: int, count: int) -> str:
    """Words that no other number gives."""
    return " ".join(f"word{number}" for number in range(first, first + count))


def found(rated: list[list[str]], read: list[list[str]]) -> list[tuple[int, int]]:
    return list(Index(rated).shared(signs_of(read)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It isn't far, is it?", "it is n't far , is it ?"),
        ("I'm sure you'll like it.", "I ’ m sure you ’ ll like it ."),
        ("We don't KNOW", "we do n't know"),
        ("Half-past ten; room 12B", "half past ten room 12b"),
    ],
)
def test_tokenisation_and_case_make_no_difference(one: str, other: str) -> None:
    assert words(one) == words(other)


def test_a_run_of_thirteen_words_is_seen_over_the_borders_of_turns_and_twelve_are_not() -> None:
    rated = [words_from(0, 7), words_from(7, 6)]
    assert found([rated], [[f"before {words_from(0, 13)} after"]]) == [(0, 0)]
    assert found([rated], [[f"before {words_from(0, 12)} after {words_from(12, 1)}"]]) == []


def test_the_index_agrees_with_a_search_word_by_word() -> None:
    rng = random.Random(0)
    vocabulary = [f"w{number}" for number in range(4)]
    rated = [[" ".join(rng.choices(vocabulary, k=rng.randint(0, 30)))] for _ in range(40)]
    read = [[" ".join(rng.choices(vocabulary, k=rng.randint(0, 400)))] for _ in range(10)]
    for row in range(0, 40, 4):  # some do occur
        read[row // 4][0] += " " + rated[row][0]

    def share(one: list[str], other: list[str]) -> bool:
        mine, theirs = words(one[0]), words(other[0])
        runs = {tuple(theirs[at : at + 13]) for at in range(len(theirs) - 12)}
        seen: set[tuple[str, ...]] = set()
        covered: set[int] = set()
        for at in range(len(mine) - 12):
            run = tuple(mine[at : at + 13])
            if run in runs and run not in seen:
                covered |= set(range(at, at + 13))
                seen.add(run)
        return bool(covered) and (len(covered) >= 20 or 2 * len(covered) >= len(mine))

    expected = {(i, j) for i, one in enumerate(rated) for j, other in enumerate(read) if share(one, other)}
    assert expected
    assert set(found(rated, read)) == expected


def benchmark(path: Path, rows: list[dict[str, object]]) -> str:
    path.write_text("".join(json.dumps({"scores": {"quality": 1.0}, **row}) + "\n" for row in rows))
    return str(path)


def test_rows_are_found_by_context_and_reference_but_not_by_what_a_system_said(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"id": "context", "context": [words_from(0, 15), words_from(15, 9)], "response": "no"},
        {"id": "reference", "context": ["hm"], "response": "no", "references": [words_from(50, 21)]},
        {"id": "retrieved", "context": ["well"], "response": words_from(100, 30)},
        {"id": "clean", "context": [words_from(200, 30)], "response": "yes"},
    ]
    recount = Recount([benchmark(tmp_path / "mine.jsonl", rows)])
    leaks = recount.leaks(
        [
            ("a", [(words_from(0, 15), words_from(15, 9), "yes")]),
            ("b", [("x",), (words_from(50, 21),)]),
            ("c", [(words_from(100, 30),)]),
        ]
    )
    assert list(leaks.values()) == [{"context": {"a"}, "reference": {"b"}}]
    again = merged(leaks, recount.leaks([("d", [(words_from(50, 21),)])]))
    assert list(again.values()) == [{"context": {"a"}, "reference": {"b", "d"}}]


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.skipif(not MIRROR.is_dir(), reason="no benchmark files at hand: DIALEVAL_MIRROR names no folder")
@pytest.mark.skipif(not CORPORA.is_dir(), reason="no corpora at hand: DIALEVAL_CORPORA names no folder")
def test_no_recipe_trains_on_a_benchmark_that_it_does_not_declare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "training"))
    script = importlib.import_module("recount")
    found = list(script.verdicts(script.recipe_names(), Recount(mirror=MIRROR), CORPORA, MIRROR))
    assert {one.name: one.undeclared for one in found if one.undeclared} == {}
    # The recount sees what is there to be seen.
    deb = next(one for one in found if one.name == "deb-lora")
    assert deb.marked == ["dailydialogpp_dev", "dailydialogpp_positives"]
    fitted = next(one for one in found if one.name == "quantidce-minilm")
    assert "dailydialog_grade" in fitted.marked


def test_kept_leaks_are_rows_of_marked_benchmarks() -> None:
    kept = json.loads((WEIGHTS / "leaks.json").read_text("utf-8"))
    # Those of the package, and those of the trained baselines.
    baselines = ROOT / "plugins/dialeval-baselines/src/dialeval_baselines/weights"
    folders = {path.name: path for path in (*embedded_checkpoints().values(), *baselines.iterdir())}
    assert set(kept) <= set(folders)
    for name, found in kept.items():
        marked = CheckpointConfig.read(folders[name]).contaminated_by
        assert set(found) <= set(marked)
        for benchmark, rows in found.items():
            assert rows == "all" or 0 < len(set(rows)) == len(rows) < 0.9 * benchmarks.info(benchmark).rows
    # The paper fits QuantiDCE to ratings of all of dailydialog_grade.
    assert kept["quantidce-minilm"]["dailydialog_grade"] == "all"


def test_a_stock_sentence_in_a_longer_conversation_is_no_finding_and_twenty_words_are() -> None:
    long = [words_from(100, 60)]
    assert found([[words_from(0, 19), *long]], [[words_from(0, 19)]]) == []
    assert found([[words_from(0, 20), *long]], [[words_from(0, 20)]]) == [(0, 0)]
    # Said twice it is still one sentence.
    assert found([[words_from(0, 13), "so", words_from(0, 13), *long]], [[words_from(0, 13)]]) == []
    # Two apart are together more than a stock sentence.
    assert found([[words_from(0, 13), *long, words_from(20, 13)]], [[words_from(20, 13), "hm", words_from(0, 13)]]) == [
        (0, 0)
    ]
