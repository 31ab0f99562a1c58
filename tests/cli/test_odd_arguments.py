"""Arguments of odd kinds: one sentence that says what to pass."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import pytest

import dialeval
from dialeval.encoders.batching import choose_device
from refusals import refused
from resources import PATIENCE

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", [None, 3, b"judge", {"judge": 1}, {"judge"}, [None], ("judge", b"deb"), object()])
def test_a_metric_is_named_by_a_text(name: Any) -> None:
    refused(TypeError, "metric", dialeval.load, name)


@pytest.mark.parametrize(
    ("metric", "option"),
    [
        (metric, option)
        for metric in ("judge", "density", "fbd", "lm_likelihood")
        for option in ("batch_tokens", "max_length")
    ]
    + [("prd", "clusters"), ("cmn", "samples"), ("deltableu", "order")],
)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 2.5, -1])
def test_a_number_is_one(metric: str, option: str, value: float) -> None:
    """Before any weights are looked for."""
    refused(ValueError, option, dialeval.load, metric, **{option: value})


@pytest.mark.parametrize("device", ["meta", "nowhere", (1, 2)])
def test_a_device_holds_numbers(device: Any) -> None:
    refused(ValueError, "device", choose_device, device)


@pytest.mark.parametrize(
    ("closed", "options", "message"),
    [
        ("<&-", "-i - -o out.jsonl", "standard input is closed"),
        (">&-", "-i rows.jsonl -o -", "standard output is closed"),
    ],
)
def test_a_closed_stream(closed: str, options: str, message: str, tmp_path: Any) -> None:
    (tmp_path / "rows.jsonl").write_text('{"context": ["Hi!"], "response": "Hello.", "references": ["Hello!"]}\n')
    command = f"exec {sys.executable} -m dialeval score -m rougeL {options} {closed}"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert message in done.stderr
