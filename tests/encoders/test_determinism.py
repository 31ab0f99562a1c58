"""The same numbers again: in another process, with another number of threads, alone or in company, after saving.

With one number of threads values are equal to the last bit. Another number of threads, or another batch, adds in
another order; float32 then differs in its last digits, and what is computed from it by less than `ROUNDING`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import dialeval
from dialeval.papers import network_class
from small_checkpoints import small_checkpoint

pytestmark = pytest.mark.slow
METRICS = ("density", "deb", "cmn", "quantidce", "judge")
#: Of a value of this size: |difference| <= ROUNDING * (1 + |value|).
ROUNDING = 1e-4

RESPONSES = ["It stopped at noon.", "Blue is what cows eat.", "I'm fine, thanks. And you?", "Yes."]
CONTEXTS = [
    ["Is it still raining?"],
    ["Which way to the station?"],
    ["Hello!", "How are you?"],
    ["Are you\u202ethere?"],
]
ROWS = {"responses": RESPONSES, "contexts": CONTEXTS, "references": ["No.", "Left.", "Well.", "I am."]}

_AGAIN = f"""
import json, dialeval, torch
torch.set_num_threads(1)
rows = {ROWS!r}
scores = {{name: dialeval.load(name, device="cpu").score(**rows) for name in {METRICS!r}}}
print(json.dumps({{name: [list(one.values), str(one.signature)] for name, one in scores.items()}}))
"""


@pytest.fixture
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def close(one: np.ndarray, other: np.ndarray) -> bool:
    return bool((np.abs(one - other) <= ROUNDING * (1 + np.abs(one))).all())


@pytest.mark.encoder
@pytest.mark.usefixtures("_threads")
def test_embedded_checkpoints_give_the_same_again() -> None:
    """Another process, in which sets and dictionaries of strings are hashed otherwise; and one to two threads."""
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "HF_HUB_OFFLINE": "1"}
    other = subprocess.Popen([sys.executable, "-c", _AGAIN], env=environment, stdout=subprocess.PIPE, text=True)
    here: dict[str, list[object]] = {}
    for name in METRICS:
        metric = dialeval.load(name, device="cpu")
        torch.set_num_threads(1)
        once = metric.score(**ROWS)
        assert np.isfinite(once.values).all()
        assert len(set(once.values)) == len(RESPONSES)
        assert (metric.score(**ROWS).values == once.values).all()
        here[name] = [list(once.values), str(once.signature)]
        alone = [
            metric.score(**{column: values[row : row + 1] for column, values in ROWS.items()}).values[0]
            for row in range(len(RESPONSES))
        ]
        assert close(once.values, np.array(alone)), name
        turned = metric.score(**{column: values[::-1] * 2 for column, values in ROWS.items()}).values
        assert close(once.values, turned[::-1][: len(RESPONSES)]), name
        torch.set_num_threads(2)
        assert close(once.values, metric.score(**ROWS).values), name
    message, _ = other.communicate()
    assert other.returncode == 0
    assert json.loads(message.splitlines()[-1]) == here


@pytest.mark.parametrize("name", METRICS)
def test_saving_and_loading_keeps_every_value(tiny_encoder: Path, tmp_path: Path, name: str) -> None:
    rows = {
        "responses": ["i am fine thanks", "fish and chips", "no thank you"],
        "contexts": [["hello there", "how are you"], ["what do you like to eat"], ["shall we go for a walk"]],
        "references": ["fine thanks", "i like fish", "yes please"],
    }
    first = small_checkpoint(name, tiny_encoder, tmp_path / "first")
    network = network_class(name).from_pretrained(first, device="cpu", trainable=True)
    network.save_pretrained(tmp_path / "second")
    network.save_pretrained(tmp_path / "merged", merged=True)
    values = {
        folder: dialeval.load(name, checkpoint=tmp_path / folder, device="cpu").score(**rows).values
        for folder in ("first", "second", "merged")
    }
    assert (values["first"] == values["second"]).all()
    assert close(values["first"], values["merged"])


@pytest.mark.encoder
@pytest.mark.usefixtures("_threads")
def test_a_second_run_gives_the_same_verdict_whatever_its_batches_and_threads() -> None:
    """What the README's first screen says of the embedded judge."""
    said = ["It was great, thanks!", "The library closes at six.", "Yes, we went to the sea and it rained all week."]
    ask = [
        f"How was your {what} in {where}?" for what in ("trip", "exam", "dinner") for where in ("Rome", "Oslo", "Ghent")
    ]
    new = [{"context": [one], "response": said[at % 3], "id": one} for at, one in enumerate(ask)]
    old = [{**row, "response": said[0]} for row in new]

    def verdict(tokens: int, threads: int) -> dialeval.Gate:
        torch.set_num_threads(threads)
        judge = dialeval.load("judge", device="cpu", batch_tokens=tokens)
        return dialeval.gate(new, old, judge, margin=0.05, min_contexts=5, resamples=500)

    first = verdict(2048, 1)
    assert verdict(2048, 1) == first
    for tokens, threads in ((2048, 2), (64, 1), (300, 2)):
        again = verdict(tokens, threads)
        assert again.verdict == first.verdict
        assert abs(again.mean_new - first.mean_new) < ROUNDING
        assert max(abs(a.value - b.value) for a, b in zip(again.worst, first.worst, strict=True)) < ROUNDING
