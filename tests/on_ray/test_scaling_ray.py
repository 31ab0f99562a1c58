"""The same scores through a local Ray as in one process, also when an actor is killed or the job is run again."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval
import dialeval.ray
from dialeval.exchange import Exchange
from dialeval.ray.parts import PieceScorer
from local_ray import local_ray
from shards import rows
from small_checkpoints import small_checkpoint

pytestmark = pytest.mark.slow

ray = pytest.importorskip("ray")
pa = pytest.importorskip("pyarrow")

PIECE = 400


@pytest.fixture(scope="module", autouse=True)
def _local_ray() -> Iterator[None]:
    with local_ray():
        yield


@pytest.fixture(scope="module")
def checkpoint(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_checkpoint("density", tiny_encoder, tmp_path_factory.mktemp("density") / "tiny")


@pytest.fixture(scope="module")
def made() -> list[dict[str, Any]]:
    return rows(1200, ("a", "b"))


@pytest.fixture(scope="module")
def files(made: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three Parquet files with several row groups, the second of which has one row."""
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("rows")
    for number, (start, end) in enumerate([(0, 500), (500, 501), (501, 1200)]):
        pq.write_table(pa.Table.from_pylist(made[start:end]), folder / f"{number}.parquet", row_group_size=400)
    return folder


@pytest.fixture(scope="module")
def expected(made: list[dict[str, Any]], checkpoint: Path) -> dialeval.Scores:
    return dialeval.load("density", checkpoint=checkpoint, device="cpu").score_exchanges(exchanges(made))


def exchanges(made: list[dict[str, Any]]) -> list[Exchange]:
    return [
        Exchange(tuple(row["context"]), row["response"], tuple(row["references"]), system=row["system"]) for row in made
    ]


def scored(folder: Path) -> dict[str, list[Any]]:
    """The parts of an output in the order of their names."""
    import pyarrow.parquet as pq

    parts = [pq.read_table(path) for path in sorted(folder.glob("part-*.parquet"))]
    table: dict[str, list[Any]] = pa.concat_tables(parts).to_pydict()
    return table


def kill_an_actor(output: Path, killed: list[int], ended: threading.Event) -> None:
    """Kill the first process that scores, once something is written and while something is missing."""
    import psutil

    while not ended.is_set():
        if list(output.glob("part-*.parquet")):
            for process in psutil.process_iter(["cmdline"]):
                shown = " ".join(process.info["cmdline"] or [])
                if shown.startswith("ray::") and PieceScorer.__name__ in shown:
                    process.kill()
                    killed.append(len(list(output.glob("part-*.parquet"))))
                    return
        time.sleep(0.01)


def test_an_actor_killed_in_the_middle(
    files: Path, made: list[dict[str, Any]], checkpoint: Path, expected: dialeval.Scores, tmp_path: Path
) -> None:
    killed: list[int] = []
    given = {"checkpoints": {"density": str(checkpoint)}, "actors": 2, "cpus_per_actor": 1.0, "device": "cpu"}
    for attempt in range(5):  # on a busy machine the killer may come too late
        output, ended = tmp_path / f"out-{attempt}", threading.Event()
        killer = threading.Thread(target=kill_an_actor, args=(output, killed, ended))
        killer.start()
        summary = dialeval.ray.score_files(str(files), str(output), "density", piece_rows=40, **given)
        ended.set()
        killer.join()
        if killed and killed[0] < 1200 // 40:
            break
        killed.clear()
    if not killed:
        pytest.skip("five jobs ended before this busy machine found the time to kill an actor")
    table = scored(output)
    assert table["row"] == list(range(1200))
    assert table["id"] == [row["id"] for row in made]
    assert table["density"] == pytest.approx(expected.values, abs=1e-4)
    assert summary.n == 1200
    tally = summary.tallies["density"]
    assert (tally.n, tally.n_truncated) == (1200, expected.n_truncated)
    assert tally.aggregate == pytest.approx(expected.aggregate)
    assert tally.signature == str(expected.signature)


def test_a_job_goes_on_where_it_was(
    files: Path, checkpoint: Path, tiny_encoder: Path, made: list[dict[str, Any]], tmp_path: Path
) -> None:
    output = tmp_path / "out"
    weights = {"density": str(checkpoint), "fbd": str(tiny_encoder)}
    given = {"checkpoints": weights, "actors": 1, "cpus_per_actor": 1.0, "piece_rows": PIECE, "device": "cpu"}
    metrics = ["density", "fbd"]
    whole = dialeval.ray.score_files(f"{files}/*.parquet", str(output), metrics, **given).to_dict()
    before = scored(output)
    with pytest.raises(FileExistsError, match="is finished"):
        dialeval.ray.score_files(f"{files}/*.parquet", str(output), metrics, **given)

    (output / "summary.json").unlink()
    parts = sorted(output.glob("part-*.parquet"))
    assert len(parts) == 5
    written = {path: path.stat().st_mtime_ns for path in parts}
    for path in parts[2:4]:
        path.unlink()
    with pytest.raises(ValueError, match="other options or another input"):
        dialeval.ray.score_files(f"{files}/*.parquet", str(output), metrics, **given, scale="human_percentile")
    again = dialeval.ray.score_files(f"{files}/*.parquet", str(output), metrics, **given)
    assert again.n_resumed == 1200 - 401
    assert scored(output) == before
    assert json.loads((output / "summary.json").read_text()) == again.to_dict()
    assert {path: path.stat().st_mtime_ns for path in parts if path not in parts[2:4]}.items() <= written.items()
    for name, message in whole["metrics"].items():
        found = again.to_dict()["metrics"][name]
        assert found["aggregate"] == pytest.approx(message["aggregate"], rel=1e-9), name

    alone = dialeval.load("fbd", checkpoint=tiny_encoder, resamples=0, device="cpu").score_exchanges(exchanges(made))
    systems = dict(zip(alone.ids or (), alone.values, strict=True))
    assert whole["metrics"]["fbd"]["systems"] == pytest.approx(systems, rel=1e-4, abs=0)
    assert whole["metrics"]["fbd"]["signature"] == str(alone.signature)


def test_any_data_set(
    made: list[dict[str, Any]], checkpoint: Path, tiny_encoder: Path, expected: dialeval.Scores
) -> None:
    renamed = [{**row, "reply": row["response"]} for row in made]
    for row in renamed:
        del row["response"]
    dataset = ray.data.from_items(renamed, override_num_blocks=5)
    weights = {"density": str(checkpoint), "fbd": str(tiny_encoder)}
    found = dialeval.ray.score(
        dataset,
        ["density", "fbd"],
        columns={"response": "reply"},
        checkpoints=weights,
        actors=1,
        cpus_per_actor=1.0,
        packet_rows=300,
        device="cpu",
    )
    alone = dialeval.load("fbd", checkpoint=tiny_encoder, resamples=0).score_exchanges(exchanges(made))
    assert dict(zip(found.systems["fbd"].ids or (), found.systems["fbd"].values, strict=True)) == pytest.approx(
        dict(zip(alone.ids or (), alone.values, strict=True)), rel=1e-4, abs=0
    )
    table = {row["id"]: row for row in found.rows.take_all()}
    assert len(table) == len(made)
    ordered = [table[row["id"]] for row in made]
    assert np.array([row["density"] for row in ordered]) == pytest.approx(expected.values, abs=1e-4)
    assert all(row["reply"] == given["response"] for row, given in zip(ordered, made, strict=True))


def test_a_bad_row_is_named_or_set_aside(files: Path, tmp_path: Path, made: list[dict[str, Any]]) -> None:
    import pyarrow.parquet as pq

    bad = [{**row, "response": "" if number == 77 else row["response"]} for number, row in enumerate(made[:100])]
    pq.write_table(pa.Table.from_pylist(bad), tmp_path / "bad.parquet")
    given = {"actors": 1, "cpus_per_actor": 1.0, "piece_rows": 50}
    with pytest.raises(ValueError, match=r"row 77 \(.*bad.parquet\): response is empty"):
        dialeval.ray.score_files(str(tmp_path / "bad.parquet"), str(tmp_path / "a"), "bleu1", **given)
    summary = dialeval.ray.score_files(
        str(tmp_path / "bad.parquet"), str(tmp_path / "b"), "bleu1", skip_bad=True, **given
    )
    assert (summary.n, summary.n_rejected) == (99, 1)
    assert 77 not in scored(tmp_path / "b")["row"]
    (rejects,) = (tmp_path / "b").glob("*.rejects.jsonl")
    assert json.loads(rejects.read_text())["row"] == 77


def test_what_others_put_into_the_folder_stays(files: Path, tmp_path: Path) -> None:
    output, given = tmp_path / "out", {"actors": 1, "cpus_per_actor": 1.0}
    dialeval.ray.score_files(str(files / "1.parquet"), str(output), "bleu1", **given)
    ours = {path.name: path.read_bytes() for path in output.iterdir()}
    (output / "notes.txt").write_text("ours")
    (output / "pictures").mkdir()
    read = output / "part-000000000000009.parquet"
    shutil.copy(files / "1.parquet", read)
    with pytest.raises(ValueError, match="is read, but lies in the folder that is written"):
        dialeval.ray.score_files(str(read), str(output), "bleu1", resume=False, **given)
    (tmp_path / "link.parquet").symlink_to(read)
    with pytest.raises(ValueError, match="is read, but lies in the folder that is written"):
        dialeval.ray.score_files(str(tmp_path / "link.parquet"), str(output), "bleu1", resume=False, **given)
    assert {path.name: path.read_bytes() for path in output.iterdir() if path.name in ours} == ours
    assert read.read_bytes() == (files / "1.parquet").read_bytes()
    read.unlink()
    dialeval.ray.score_files(str(files / "1.parquet"), str(output), "bleu1", resume=False, **given)
    assert {path.name for path in output.iterdir()} == {*ours, "notes.txt", "pictures"}
