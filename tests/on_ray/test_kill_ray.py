"""Actors of one job, killed while work is half done, again and again: the table is that of one process.

DIALEVAL_KILLS=20 kills twenty times.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dialeval
import dialeval.ray
import overlap_metric
from dialeval.exchange import Exchange
from dialeval.ray.parts import PieceScorer
from local_ray import local_ray
from resources import PATIENCE
from shards import rows

pytestmark = pytest.mark.slow

pytest.importorskip("ray")
psutil = pytest.importorskip("psutil")
pa = pytest.importorskip("pyarrow")

KILLS = int(os.environ.get("DIALEVAL_KILLS", "2"))
#: Rows of a piece, and so many pieces that each kill finds some finished and others missing.
PIECE, PIECES = 10, 8 * (KILLS + 3)


@pytest.fixture(scope="module", autouse=True)
def _local_ray() -> Iterator[None]:
    # Every piece takes a while, so that whoever is killed is killed in the middle of one.
    with local_ray(OVERLAP_SECONDS="0.5"):
        overlap_metric.register()
        yield


def scoring() -> dict[int, Any]:
    """The processes that score by now, by their number; Ray writes into the title what each of them is at."""
    found = {}
    for process in psutil.process_iter(["cmdline"]):
        shown = " ".join(process.info["cmdline"] or [])
        if shown.startswith("ray::") and PieceScorer.__name__ in shown and "__init__" not in shown:
            found[process.pid] = process
    return found


def kill_actors(output: Path, kills: list[tuple[int, int]], ended: threading.Event) -> None:
    """Kill all of them each time that more is finished than when they were killed last, and note who and when."""
    done, gone, until = 0, set[int](), time.monotonic() + PATIENCE
    while len(kills) < KILLS and not ended.is_set() and time.monotonic() < until:
        finished = len(list(output.glob("part-*.parquet")))
        alive = {number: process for number, process in scoring().items() if number not in gone}
        if finished > done and alive:
            for number, process in list(alive.items())[: KILLS - len(kills)]:
                process.kill()
                gone.add(number)
                kills.append((number, finished))
            done = finished
        time.sleep(0.05)


def test_actors_killed_again_and_again(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    made: list[dict[str, Any]] = rows(PIECE * PIECES)
    pq.write_table(pa.Table.from_pylist(made), tmp_path / "rows.parquet")
    kills: list[tuple[int, int]] = []
    output, ended = tmp_path / "out", threading.Event()
    killer = threading.Thread(target=kill_actors, args=(output, kills, ended))
    killer.start()
    try:
        summary = dialeval.ray.score_files(
            str(tmp_path / "rows.parquet"), str(output), "overlap", piece_rows=PIECE, actors=2, cpus_per_actor=1.0
        )
    finally:
        ended.set()
        killer.join()
    assert len(kills) == KILLS
    # Work was half done each time: some pieces were finished, and some were missing.
    assert all(0 < count < PIECES for _, count in kills)
    # Two actors at most were there at once, and each time more was finished than the time before.
    assert len({count for _, count in kills}) >= KILLS / 2
    alone = dialeval.load("overlap").score_exchanges([Exchange(tuple(row["context"]), row["response"]) for row in made])
    parts = [pq.read_table(path) for path in sorted(output.glob("part-*.parquet"))]
    table = pa.concat_tables(parts).to_pydict()
    assert table["row"] == list(range(len(made)))
    assert table["id"] == [row["id"] for row in made]
    assert table["overlap"] == list(alone.values)
    assert (summary.n, summary.tallies["overlap"].aggregate) == (len(made), pytest.approx(alone.aggregate))
    # What dying actors were writing is not left beside the parts.
    assert {path.name.split("-")[0] for path in output.iterdir()} == {"part", "_run.json", "summary.json"}
