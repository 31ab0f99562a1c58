"""Ids, groups, mean scores, columns, subsets, revisions, and the declarations of the catalogue."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from counted_rows import ROWS
from dialeval import benchmarks
from dialeval.benchmarks.benchmark import (
    Benchmark,
    BenchmarkInfo,
    FileSource,
    Scale,
    SourceFile,
    Subset,
    complete,
    to_dataset,
)
from refusals import refused

RATED = BenchmarkInfo(
    name="toy",
    title="Toy",
    level="turn",
    rows=3,
    sources=(FileSource("someone/something", "0" * 40, (SourceFile("a", "1" * 64, 1),)),),
    licence="MIT",
    citation="nobody",
    aspects={"overall": Scale(1, 5), "wit": Scale(0, 1)},
    main_aspect="overall",
    systems=("truth", "S2S"),
    exclusions={"generated": ("truth",), "none": ()},
    default_exclusion="generated",
    subsets={"paper": Subset(without=("truth",), last_share=0.5)},
)


def raw(context: list[str], system: str, ratings: dict[str, list[float]]) -> dict[str, Any]:
    return {"context": context, "response": "Yes.", "system": system, "ratings": ratings}


RAW = [
    raw(["Hi."], "truth", {"overall": [4, 5, 5], "wit": [1]}),
    raw(["Hi.", "Tea?"], "S2S", {"overall": [1, 2]}),
    raw(["Hi."], "S2S", {"overall": [3], "wit": []}),
]


def test_rows_get_ids_groups_and_means() -> None:
    rows = complete(RATED, RAW)
    assert [row["id"] for row in rows] == ["toy-00000", "toy-00001", "toy-00002"]
    assert [row["group"] for row in rows] == ["toy-context-00000", "toy-context-00001", "toy-context-00000"]
    assert [row["scores"] for row in rows] == [
        {"overall": 14 / 3, "wit": 1.0},
        {"overall": 1.5, "wit": None},
        {"overall": 3.0, "wit": None},
    ]
    assert rows[1]["ratings"] == {"overall": [1.0, 2.0], "wit": []}


def test_another_number_of_rows_than_declared_is_refused() -> None:
    refused(ValueError, "3 rows", complete, RATED, RAW[:2])


def test_the_table_of_rated_turns() -> None:
    table = to_dataset(RATED, complete(RATED, RAW))
    assert table.column_names == [
        "id", "dataset", "level", "context", "response", "references", "facts", "system", "group", "scores", "ratings",
    ]  # fmt: skip
    assert (table["references"][:], table["facts"][:]) == ([[]] * 3, [[]] * 3)
    assert table[1]["scores"] == {"overall": 1.5, "wit": None}


def test_selecting_rows_by_exclusion_and_subset() -> None:
    toy = Benchmark(RATED, to_dataset(RATED, complete(RATED, RAW)))
    assert toy.select()["id"][:] == ["toy-00001", "toy-00002"]
    assert toy.select(exclusion="none")["id"][:] == ["toy-00000", "toy-00001", "toy-00002"]
    assert toy.select(subset="paper")["id"][:] == ["toy-00002"]
    assert toy.protocol == "standard"
    refused(ValueError, "humans", toy.select, exclusion="humans")
    refused(ValueError, "densty", toy.select, subset="densty")
    refused(ValueError, "exclusion", toy.select, exclusion="none", subset="paper")


def test_the_revision_changes_with_everything_that_changes_rows() -> None:
    other_file = (FileSource("someone/something", "0" * 40, (SourceFile("a", "2" * 64, 1),)),)
    changes: list[dict[str, Any]] = [
        {"name": "other"},
        {"protocol": "clean"},
        {"reader_version": 2},
        {"sources": other_file},
        {"companion": SourceFile("b", "3" * 64, 1)},
    ]
    assert len({RATED.revision, *(replace(RATED, **change).revision for change in changes)}) == 6
    assert replace(RATED, oddities=("a note",)).revision == RATED.revision
    assert re.fullmatch(r"[0-9a-f]{12}", RATED.revision)


EVERY = [(name, protocol) for name in benchmarks.available() for protocol in benchmarks.protocols(name)]


@pytest.mark.parametrize(("name", "protocol"), EVERY)
def test_declarations_hold_together(name: str, protocol: str) -> None:
    info = benchmarks.info(name, protocol)
    assert (info.name, info.protocol) == (name, protocol)
    assert info.licence
    assert info.citation
    assert info.default_exclusion in info.exclusions
    assert info.exclusions["none"] == ()
    left_out = [*info.exclusions.values(), *(subset.without for subset in info.subsets.values())]
    for systems in (*left_out, info.human_systems, info.negative_systems):
        assert set(systems) <= set(info.systems)
    assert len(set(info.systems)) == len(info.systems)
    if info.kind == "ratings":
        assert info.main_aspect in info.aspects
        assert all(scale.low < scale.high for scale in info.aspects.values())
    else:
        assert not info.aspects
    pinned = [file for _, file in info.files] + ([info.companion] if info.companion else [])
    assert pinned
    for file in pinned:
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        assert file.bytes > 0
    for source in info.sources:
        assert re.fullmatch(r"[0-9a-f]{40}", source.commit)
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", source.repository)


def test_an_unknown_benchmark_or_protocol_gets_help() -> None:
    refused(ValueError, "convai_grade", benchmarks.info, "convai_grade")
    refused(ValueError, "zzz", benchmarks.load, "zzz")
    refused(ValueError, "released", benchmarks.info, "fbd_dailyz", "released")


def test_every_benchmark_is_counted_here() -> None:
    assert set(ROWS) == {(name, protocol) for name in benchmarks.available() for protocol in benchmarks.protocols(name)}
