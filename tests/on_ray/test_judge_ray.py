"""The judge on a real local Ray: aspects, ends of intervals and reasons as in one process."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_scaling_ray import _local_ray  # noqa: F401  (a fixture: one Ray for the module)

import dialeval
import dialeval.ray
from judged_rows import many, same, scores_of
from rated_rows import small_judge

pytestmark = pytest.mark.slow

pa = pytest.importorskip("pyarrow")


def test_ray_says_what_one_process_says(tiny_encoder: Path, tmp_path: Path) -> None:
    import pandas as pd
    import pyarrow.parquet as pq

    checkpoint = small_judge(tiny_encoder, tmp_path / "judge-tiny")
    made = many()
    scores = scores_of(dialeval.load("judge", checkpoint=checkpoint, device="cpu"), made)
    texts = [{key: row.get(key) for key in ("context", "response", "facts", "following")} for row in made]
    pq.write_table(pa.Table.from_pylist(texts), tmp_path / "many.parquet", row_group_size=300)
    summary = dialeval.ray.score_files(
        str(tmp_path / "many.parquet"), str(tmp_path / "out"), "judge", checkpoints={"judge": str(checkpoint)},
        empty="score", explain=True, actors=1, cpus_per_actor=1.0, device="cpu",
    )  # fmt: skip
    frame = pd.concat([pd.read_parquet(path) for path in sorted((tmp_path / "out").glob("part-*.parquet"))])
    same(frame.to_dict("records"), scores)
    means = {name: float(pd.Series(column).mean()) for name, column in scores.aspects.items()}
    assert summary.tallies["judge"].aspect_means == pytest.approx(means, abs=1e-5)
