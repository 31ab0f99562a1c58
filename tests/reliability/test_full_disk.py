"""A disk that is full from any operation on, or may not be written: a sentence, nothing lost, and later it goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import full_disk
import overlap_metric
from dialeval.cli import build_app
from rated_rows import small_judge
from resources import PATIENCE
from toy_benchmark import rated_rows

pytestmark = pytest.mark.slow

HELPERS = Path(full_disk.__file__).parent
#: Every so manieth operation is the first that fails; each of them where there is time.
STEP = 1 if os.environ.get("DIALEVAL_KILLS") else 7
#: Those of many operations, or each of which takes long.
SLOW = ("agreement", "leaderboard", "tune")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = full_disk.built(tmp_path_factory.mktemp("library"))
    if found is None:
        pytest.skip("needs a C compiler and Linux")
    return found


@pytest.fixture(scope="module")
def environment(library: Path, tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """With a small judge to tune, and an earlier run's folder."""
    folder = tmp_path_factory.mktemp("full")
    overlap_metric.register()
    (folder / "toy.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rated_rows(contexts=6)))
    asked = ["agreement", "-m", "overlap", "-b", str(folder / "toy.jsonl"), "-o", str(folder / "report")]
    few = ["--resamples", "20", "--statistics", "spearman", "--plots", "none"]
    assert CliRunner().invoke(build_app(), [*asked, *few]).exit_code == 0
    (folder / "report" / "leaderboard.md").write_text("of an earlier version")
    made = {
        "FULL_DISK_REPORT": str(folder / "report"),
        "FULL_DISK_JUDGE": str(small_judge(tiny_encoder, folder / "judge")),
        "PYTHONPATH": os.pathsep.join([str(HELPERS), str(HELPERS.parent), *sys.path]),
        # Threads would not be there in a fork, which would wait for them for ever.
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    return {**os.environ, **made, "LD_PRELOAD": str(library)}


def faults(environment: dict[str, str], place: Path, name: str, way: str) -> Any:
    asked = [sys.executable, str(HELPERS / "full_disk.py"), str(place), name, way, str(STEP)]
    done = subprocess.run(asked, env=environment, capture_output=True, text=True, timeout=30 * PATIENCE)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", full_disk.COMMANDS)
@pytest.mark.parametrize("way", full_disk.WAYS)
def test_a_disk_that_fails(way: str, name: str, environment: dict[str, str], tmp_path: Path) -> None:
    if name in SLOW and way not in ("full", "read-only") and STEP > 1:
        pytest.skip("takes long; DIALEVAL_KILLS lets it")
    assert faults(environment, tmp_path / "place", name, way) == []


@pytest.mark.parametrize(
    "arguments",
    [
        "info",
        "score -m bleu1 -i rows.jsonl -o scores.parquet",
        "score -m density -i rows.jsonl -o scores.jsonl --device cpu",
        "rank rows.jsonl --metric bleu1 --resamples 100 --plot means.png",
        "agreement -m bleu1 -b rated.jsonl -o out --resamples 20 --statistics spearman",
        "benchmarks export rated.jsonl -o out",
    ],
)
def test_a_home_that_may_not_be_written(arguments: str, library: Path, tmp_path: Path) -> None:
    """Caches are a convenience: what is asked for is done without them."""
    home, place = tmp_path / "home", tmp_path / "place"
    home.mkdir()
    place.mkdir()
    rows = [
        {"context": [f"{at} a"], "response": f"{at} b", "reference": f"{at} b", "system": name}
        for at in range(6)
        for name in "xy"
    ]
    (place / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (place / "rated.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rated_rows(contexts=6)))
    own = {"HOME": str(home), "FULL_DISK_FOLDER": str(home), "LD_PRELOAD": str(library), "HF_HUB_OFFLINE": "1"}
    caches = ("HF_HOME", "HF_MODULES_CACHE", "XDG_CACHE_HOME", "MPLCONFIGDIR", "DIALEVAL_CACHE", "HF_DATASETS_CACHE")
    kept = {name: value for name, value in os.environ.items() if name not in caches}
    done = subprocess.run(
        [sys.executable, "-m", "dialeval", *arguments.split()],
        env={**kept, **own, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=place,
        capture_output=True,
        text=True,
        timeout=10 * PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert list(home.rglob("*")) == []
