"""The real files: row counts, means, alignment with published scores, and the oddities that are claimed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from counted_rows import ROWS
from dialeval import benchmarks
from dialeval.benchmarks import Benchmark, FetchError
from refusals import refused
from resources import MIRROR
from resources import PUBLISHED_SCORES as SCORES

pytestmark = [pytest.mark.data, pytest.mark.slow]

Load = Callable[..., Benchmark]


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Any:
    loaded: dict[tuple[str, str], Benchmark] = {}

    def of(name: str, protocol: str | None = None) -> Benchmark:
        key = name, protocol or benchmarks.protocols(name)[0]
        if key not in loaded:
            loaded[key] = benchmarks.load(name, mirror=MIRROR, protocol=protocol)
        return loaded[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DIALEVAL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield of


def human(rows: Any, aspect: str) -> list[float]:
    return [scores[aspect] for scores in rows["scores"][:]]


KINDS = {name: benchmarks.info(name).kind for name in benchmarks.available()}


@pytest.mark.parametrize(("name", "protocol"), ROWS)
def test_rows_and_groups(load: Load, name: str, protocol: str) -> None:
    found = load(name, protocol)
    table = found.dataset
    assert (len(table), len(set(table["group"][:]))) == ROWS[name, protocol]
    assert len(set(table["id"][:])) == len(table)
    assert set(table["dataset"][:]) == {name}
    if found.info.systems:
        assert set(table["system"][:]) == set(found.info.systems)
    turns = table["dialogue" if found.info.level == "dialogue" else "context"][:]
    group_of: dict[tuple[str, ...], str] = {}
    for spoken, group in zip(turns, table["group"][:], strict=True):
        assert spoken
        assert group_of.setdefault(tuple(spoken), group) == group


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind == "ratings"])
def test_ratings_lie_on_the_declared_scale_and_scores_are_their_means(load: Load, name: str) -> None:
    found = load(name)
    for aspect, scale in found.info.aspects.items():
        ratings = [row[aspect] for row in found.dataset["ratings"][:]]
        given = [value for row in ratings for value in row]
        assert (min(given), max(given)) == (scale.low, scale.high)
        for values, score in zip(ratings, human(found.dataset, aspect), strict=True):
            assert score == (pytest.approx(np.mean(values)) if values else None)


@pytest.mark.published
@pytest.mark.parametrize(("name", "column"), [("fed_turn", "context"), ("fed_dialogue", "dialogue")])
def test_ids_match_the_published_scores_on_fed(load: Load, name: str, column: str) -> None:
    """These values follow the length of the text closely, and only if every id stands for its own text."""
    table = load(name).dataset
    rows = map(json.loads, (SCORES / "fed_dialogpt.jsonl").read_text("utf-8").splitlines())
    scores = {row["id"]: row["scores"] for row in rows}
    values = [scores[row_id]["fed_interesting"] for row_id in table["id"][:]]
    lengths = [sum(map(len, turns)) for turns in table[column][:]]
    assert stats.spearmanr(values, lengths)[0] > 0.93
    assert stats.spearmanr(np.roll(values, 1), lengths)[0] < 0.5


def test_a_corrupted_mirror_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))
    ((source, file),) = benchmarks.info("persona_usr").files
    copy = tmp_path / "mirror" / source.repository / source.commit / file.path
    copy.parent.mkdir(parents=True)
    shutil.copyfile(MIRROR / source.repository / source.commit / file.path, copy)
    with copy.open("r+b") as damaged:
        damaged.seek(1000)
        damaged.write(b"#")
    refused(FetchError, "pc_usr_data.json", benchmarks.load, "persona_usr", mirror=tmp_path / "mirror")
    assert benchmarks.load("persona_usr", mirror=MIRROR).info.name == "persona_usr"
