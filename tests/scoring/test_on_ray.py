"""The same scores through a local Ray as in one process, from Python and from the shell."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dialeval
from dialeval.cli import build_app
from dialeval.readers import Source
from dialeval.scoring.on_ray import RowScorer, read_dataset, score_dataset, score_systems
from refusals import refused
from shell import invoke, read_rows, write_rows
from small_checkpoints import small_checkpoint

pytestmark = pytest.mark.slow

pytest.importorskip("ray")

#: Needs nothing but a context and a reply.
COUNT = "python:toy_benchmark:count_words"
ROWS: list[dict[str, Any]] = [
    {"context": ["hello there", f"how are you {number}"], "response": "fine thanks " * (1 + number % 3),
     "references": ["i am fine"], "system": "ab"[number % 2], "id": f"r{number}"}
    for number in range(60)
]  # fmt: skip


@pytest.fixture(scope="module")
def _local_ray() -> Iterator[None]:
    """Three cores, whose workers find the modules of the tests."""
    import ray

    with pytest.MonkeyPatch.context() as changed:
        for name, value in {"RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1"}.items():
            changed.setenv(name, value)
        changed.setenv("PYTHONPATH", str(Path(__file__).parents[1] / "support"), prepend=os.pathsep)
        for attempt in range(4):
            try:
                ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, object_store_memory=128 * 2**20)
                break
            except Exception:  # Ray has no narrower one; it gives its parts half a minute, too little on a busy machine
                ray.shutdown()
                if attempt == 3:
                    raise
        ray.data.DataContext.get_current().enable_progress_bars = False
        try:
            yield
        finally:
            ray.shutdown()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    write_rows(path, ROWS)
    return path


@pytest.mark.usefixtures("_local_ray")
def test_rows_from_the_shell(file: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    checkpoint = small_checkpoint("deb", tiny_encoder, tmp_path / "tiny")
    command = ["score-ray", "-m", "deb", "-i", str(file), "-o", str(tmp_path / "out"), "--checkpoint", str(checkpoint)]
    invoke(*command, "--actors", "2")
    scored = pd.read_parquet(tmp_path / "out").set_index("id")["deb"]
    columns = {f"{name}s": [row[name] for row in ROWS] for name in ("response", "context", "id")}
    expected = dialeval.load("deb", checkpoint=checkpoint, device="cpu").score(**columns)
    assert np.allclose(scored.loc[columns["ids"]], expected.values, atol=1e-6)


def test_what_no_metric_takes_is_refused_before_a_row_is_read() -> None:
    nothing: Any = None
    refused(ValueError, "bleu1", score_dataset, nothing, ["bleu1"], checkpoints={"bleu1": "mine"})
    refused(ValueError, "colour", score_systems, nothing, "deb", colour="red")


@pytest.mark.usefixtures("_local_ray")
def test_systems_are_merged(file: Path, tiny_encoder: Path) -> None:
    options: dict[str, Any] = {"device": "cpu", "resamples": 10}
    columns = {f"{key}s": [row[key] for row in ROWS] for key in ("response", "context", "system")}
    references = [row["references"] for row in ROWS]
    expected = dialeval.load("fbd", checkpoint=tiny_encoder, **options).score(**columns, references=references)
    scored = score_systems(
        read_dataset(str(file)), "fbd", checkpoint=str(tiny_encoder), batch_rows=17, actors=2, **options
    )
    assert dict(zip(scored.ids or (), scored.values, strict=True)) == pytest.approx(
        dict(zip(expected.ids or (), expected.values, strict=True)), abs=1e-4
    )


@pytest.mark.usefixtures("_local_ray")
def test_rows_are_read_as_by_score(tmp_path: Path) -> None:
    table = "history,answer,id\nhello there|how are you,fine thanks,1\nhi there,guten Morgen und wie geht es dir,2\n"
    (tmp_path / "rows.csv").write_text(table)
    chats = {"messages": [{"role": who, "content": what} for who, what in [("user", "hi"), ("bot", "fine thanks")] * 2]}
    (tmp_path / "chats.jsonl").write_text(json.dumps({**chats, "id": "c"}) + "\n")
    options = ["--columns", "context=history,response=answer", "--context-separator", "|", "--other-languages", "skip"]
    for name, given in (("rows.csv", options), ("chats.jsonl", [])):
        out, file = str(tmp_path / f"{name}.out"), str(tmp_path / name)
        invoke("score-ray", "-m", "deb", "-i", file, "-o", out, *given)
        there = str(tmp_path / f"{name}.jsonl")
        invoke("score", "-m", "deb", "-i", file, "-o", there, *given)
        one_process = read_rows(there)
        scored = pd.read_parquet(out)
        assert [str(one) for one in scored["id"]] == [one["id"] for one in one_process]
        assert scored["deb"].to_list() == pytest.approx([one["deb"] for one in one_process], abs=1e-5)
    assert scored["response"].to_list() == ["fine thanks"] * 2


def test_rows_of_one_message_are_refused() -> None:
    rows = pd.DataFrame({"chat_id": [1, 1], "role": ["user", "bot"], "content": ["hi", "hi"]})
    refused(ValueError, "one message", RowScorer([COUNT], {}, {}, Source(())), rows)


def test_a_bad_conversation_is_the_one_that_is_shown() -> None:
    good = [{"role": who, "content": "hi"} for who in ("user", "assistant")] * 3
    chats = pd.DataFrame({"messages": [np.array(some) for some in (good, good[:1], good)], "id": ["a", "bad", "last"]})
    shown = refused(ValueError, "the row: ", RowScorer([COUNT], {}, {}, Source(())), chats)
    assert "'id': 'bad'" in shown.partition("the row: ")[2]


@pytest.mark.usefixtures("_local_ray")
def test_a_bad_row_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"context": ["hello"], "response": ""}) + "\n")
    done = CliRunner().invoke(build_app(), ["score-ray", "-m", "bleu1", "-i", str(path), "-o", str(tmp_path / "out")])
    assert done.exit_code != 0
    assert "the row: {'context': ['hello'], 'response': ''}" in str(done.exception) + done.output
    assert not list((tmp_path / "out").glob("*.parquet"))
