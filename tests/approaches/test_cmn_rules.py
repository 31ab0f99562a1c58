"""Which noise CMN draws for what."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cmn_networks import BANK, CONTEXTS, LATENT, RESPONSES, make_network
from dialeval.approaches.cmn import Cmn

SAMPLES = 4000


@pytest.fixture(scope="module")
def folder(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("cmn-rules") / "checkpoint"
    make_network(tiny_encoder).save_pretrained(place)
    return place


@pytest.mark.slow
def test_a_reply_and_what_it_is_compared_with_are_drawn_apart(folder: Path) -> None:
    """Σ E[x·y] of independent draws is the product of their means, for a reference that repeats the reply as well.

    One noise for both would add the products of their deviations. The negatives have no variance here, so that
    both estimators agree on them, and `closed_inner` takes the positive's expectation as it is known.
    """
    references = [[reply] for reply in RESPONSES]
    found = []
    for estimator in ("mc", "closed_inner"):
        metric = Cmn(folder, device="cpu", bound="dv", samples=SAMPLES, estimator=estimator)  # type: ignore[arg-type]
        still = np.full((BANK, LATENT), -60.0)
        means = np.random.default_rng(1).normal(size=(BANK, LATENT)) / 4
        metric.network.set_bank(*[np.hstack([means, still])] * 2)
        found.append(metric.score(RESPONSES, CONTEXTS, references).details)
    for part in ("mi_context", "mi_reference"):
        assert found[0][part] == pytest.approx(found[1][part], abs=0.2), part


def test_noise_belongs_to_a_text_and_its_role(folder: Path) -> None:
    metric = Cmn(folder, device="cpu", samples=SAMPLES)
    keys = np.array([b"one", b"two"], dtype=object)
    drawn = {role: metric._noise(role, keys).numpy() for role in ("reply", "partner", "negative")}
    columns = np.concatenate([noise.reshape(2, -1) for noise in drawn.values()])
    assert np.abs(np.corrcoef(columns) - np.eye(6)).max() < 0.05
    assert columns.mean(axis=1) == pytest.approx(np.zeros(6), abs=0.05)
    assert columns.std(axis=1) == pytest.approx(np.ones(6), abs=0.05)
    again = metric._noise("reply", keys[::-1]).numpy()
    assert np.array_equal(again[::-1], drawn["reply"])
