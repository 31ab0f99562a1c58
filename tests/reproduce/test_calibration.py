"""Calibration: percentiles and probabilities against what is found, from arithmetic to the shell."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner, Result

from refusals import refused
from reproduce.__main__ import build_app
from reproduce.calibration import dialogue_sample, percentiles, probabilities
from shell import read_rows
from small_checkpoints import small_checkpoint


def calibration(*options: str | Path) -> Result:
    return CliRunner().invoke(build_app(), ["calibration", *map(str, options)])


def test_the_gap_is_kolmogorovs_distance_from_an_even_spread() -> None:
    rng = np.random.default_rng(0)
    people, wrong = rng.beta(2, 1, size=400), rng.uniform(size=100)
    shares = np.concatenate([people, wrong])
    valid = np.arange(500) < 400
    shown = percentiles(shares, valid, np.arange(500), resamples=2000)
    assert shown.gap == pytest.approx(stats.kstest(people, "uniform").statistic)
    assert shown.by_chance == pytest.approx(stats.kstwobign.ppf(0.95) / 20, abs=1e-4)
    assert shown.gap > shown.by_chance
    assert shown.mean == pytest.approx(people.mean())
    assert shown.interval.low < shown.mean < shown.interval.high
    assert shown.mean_of_wrong == pytest.approx(wrong.mean())
    assert shown.curve[0] == 0
    assert shown.curve[-1] == 1
    assert shown.curve[50] == pytest.approx((people <= 0.5).mean())
    even = percentiles(rng.uniform(size=400), np.ones(400, dtype=bool), np.arange(400), resamples=10)
    assert even.gap < even.by_chance
    assert math.isnan(even.mean_of_wrong)
    refused(ValueError, "right", lambda: percentiles(shares, np.zeros(500, dtype=bool), np.arange(500)))


def test_a_promise_that_holds_and_one_that_does_not() -> None:
    rng = np.random.default_rng(2)
    promised = rng.uniform(size=5000)
    kept = probabilities(promised, rng.uniform(size=5000) < promised)
    assert kept.error < 0.03
    assert kept.mean_promise == pytest.approx(kept.share_valid, abs=0.02)
    assert sum(one.count for one in kept.bins) == kept.n == 5000
    assert probabilities(promised, np.ones(5000, dtype=bool)).error == pytest.approx(1 - promised.mean())


def test_every_true_turn_has_a_wrong_one_beside_it(tiny_corpora: Path) -> None:
    sample = dialogue_sample(tiny_corpora, "chat", "validation", pairs=12)
    assert sample.name == "chat:validation"
    assert sample.valid.tolist() == [True, False] * 12
    for right, wrong in zip(sample.exchanges[::2], sample.exchanges[1::2], strict=True):
        assert right.context == wrong.context
        assert right.response != wrong.response
    rows = (tiny_corpora / "chat" / "validation.jsonl").read_text().splitlines()
    turns = [json.loads(row)["utterances"] for row in rows]
    assert all(
        [*one.context, one.response] in [each[: len(one.context) + 1] for each in turns]
        for one in sample.exchanges[::2]
    )
    assert len(set(sample.groups.tolist())) == len({exchange.context[0] for exchange in sample.exchanges})


def test_from_the_shell(tiny_encoder: Path, tiny_corpora: Path, tmp_path: Path) -> None:
    deb = small_checkpoint("deb", tiny_encoder, tmp_path / "deb")
    chosen = ["-m", f"deb?checkpoint={deb}", "--corpora", tiny_corpora, "--out", tmp_path / "out", "--pairs", "30"]
    done = calibration(*chosen, "--dialogues", "chat:train,chat:validation")
    assert done.exit_code == 0, done.stderr
    rows = read_rows(tmp_path / "out" / "calibration.jsonl")
    assert [row["sample"] for row in rows] == ["chat:train", "chat:validation"]
    assert all(row["percentiles"]["n"] == 30 and row["probabilities"]["n"] == 60 for row in rows)
    page = (tmp_path / "out" / "calibration.md").read_text()
    assert f"{rows[0]['percentiles']['gap']:.3f}" in page
    assert f"{rows[1]['probabilities']['error']:.3f}" in page
    assert str(tmp_path) not in page
    assert (tmp_path / "out" / "calibration.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-m", "bleu2", "--dialogues", "chat:train"], "no human percentiles"),
        (["-m", "bleu2", "--dialogues", "chat"], "is not CORPUS:SPLIT"),
        (["-m", "bleu2", "--dialogues", "chat:none"], "has no split none"),
    ],
)
def test_what_cannot_be_checked(options: list[str], message: str, tiny_corpora: Path, tmp_path: Path) -> None:
    done = calibration(*options, "--corpora", tiny_corpora, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())
    assert not (tmp_path / "out").exists()
