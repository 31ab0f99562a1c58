"""The parts of a Ray job without Ray: what is written once is found again, whole, and adds up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dialeval.ray.files import _identity, _packet
from dialeval.ray.parts import Folder, PieceScorer
from dialeval.ray.pieces import pieces_of
from dialeval.ray.recipe import ScoringRecipe
from dialeval.ray.stages import Surveyor
from dialeval.registry import load
from dialeval.scoring.sets import SetPlan
from shards import rows
from small_checkpoints import small_checkpoint

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def recipe(tiny_encoder: Path, tmp_path: Path) -> ScoringRecipe:
    density = small_checkpoint("density", tiny_encoder, tmp_path / "density")
    weights = {"density": str(density), "fbd": str(tiny_encoder), "prd": str(tiny_encoder)}
    return ScoringRecipe.of(["density", "fbd", "prd"], checkpoints=weights, options={"device": "cpu"})


def write(path: Path, made: list[dict[str, Any]], group: int) -> None:
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(made), path, row_group_size=group)


@pytest.mark.slow
def test_parts_are_written_once_and_add_up(recipe: ScoringRecipe, tmp_path: Path) -> None:
    made = rows(240, ("a", "b"))
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / "0.parquet", made[:101], 60)
    write(tmp_path / "in" / "1.parquet", made[101:], 1000)
    pieces = pieces_of([str(tmp_path / "in")], recipe, 50)
    assert [(piece.first, piece.rows) for piece in pieces] == [
        (0, 50),
        (50, 10),
        (60, 41),
        (101, 50),
        (151, 50),
        (201, 39),
    ]

    folder = Folder.of(str(tmp_path / "out"))
    identity = _identity(recipe, pieces)
    folder.begin(identity, resume=True)
    packets = [_packet(recipe, piece) for piece in pieces]
    assert all(len(tokens) == len(packet.chunk.rows) for packet in packets for tokens in packet.tokens.values())
    surveyor, merged = Surveyor(recipe), None
    for packet in packets:
        survey = surveyor.work(packet)
        merged = survey if merged is None else merged.merge(survey)
    assert merged is not None
    plan = folder.plan(lambda: SetPlan.make(surveyor.metrics, merged))
    # What a second attempt reads is what the first one made.
    again = folder.plan(lambda: pytest.fail("there is a plan"))
    assert again.systems == plan.systems
    assert all((one == other).all() for one, other in zip(again.centroids["prd"], plan.centroids["prd"], strict=True))

    scorer = PieceScorer(recipe, plan, folder)
    totals = [scorer.work(packet) for packet in packets]
    assert sum(total.n for total in totals) == 240
    assert folder.finished() == {piece.name for piece in pieces}
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    # A packet that comes a second time, after its actor died with everything written, is not scored again.
    scorer.scoring.metrics.clear()
    assert [scorer.work(packet) for packet in packets] == totals
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()} == written

    whole = PieceScorer(recipe, plan, Folder.of(str(tmp_path / "other")))
    (tmp_path / "other").mkdir()
    big = _packet(recipe, pieces_of([str(tmp_path / "in" / "1.parquet")], recipe, 1000)[0])
    assert whole.work(big).n == 139
    names = [piece.name for piece in pieces]
    values = folder.state(names).scores(surveyor.metrics, plan)
    assert set(values["fbd"].ids or ()) == {"a", "b"}
    assert folder.state(names).rows == {"fbd": 240, "prd": 240}
    for name, tolerance in (("fbd", {"rel": 1e-4, "abs": 0}), ("prd", {"abs": 5e-3})):
        metric = load(name, checkpoint=recipe.checkpoints[name], resamples=0, device="cpu")
        alone = metric.score_exchanges([exchange for packet in packets for exchange in packet.chunk.exchanges])
        expected = dict(zip(alone.ids or (), alone.values, strict=True))
        assert dict(zip(values[name].ids or (), values[name].values, strict=True)) == pytest.approx(
            expected, **tolerance
        )


def test_a_folder_belongs_to_one_run(recipe: ScoringRecipe, tmp_path: Path) -> None:
    folder = Folder.of(str(tmp_path / "out"))
    folder.begin({"a": 1}, resume=True)
    folder.write("part-000000000000000.parquet", b"x")
    folder.begin({"a": 1}, resume=True)
    assert folder.finished() == {"part-000000000000000"}
    with pytest.raises(ValueError, match="other options or another input"):
        folder.begin({"a": 2}, resume=True)
    folder.write("summary.json", b"{}")
    with pytest.raises(FileExistsError, match="is finished"):
        folder.begin({"a": 1}, resume=True)
    folder.begin({"a": 2}, resume=False)
    assert folder.finished() == set()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    with pytest.raises(FileExistsError, match="holds something else"):
        Folder.of(str(tmp_path / "mine")).begin({}, resume=False)
    assert (tmp_path / "mine" / "notes.txt").exists()


def test_input_that_is_not_there_or_not_parquet(recipe: ScoringRecipe, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file"):
        pieces_of([str(tmp_path / "no*.parquet")], recipe, 50)
    (tmp_path / "bad.parquet").write_text("no")
    with pytest.raises(ValueError, match="is not a Parquet file"):
        pieces_of([str(tmp_path / "bad.parquet")], recipe, 50)
    write(tmp_path / "other.parquet", [{"context": ["a"], "reply": "b"}], 10)
    with pytest.raises(ValueError, match="column 'response' is missing"):
        pieces_of([str(tmp_path / "other.parquet")], recipe, 50)
