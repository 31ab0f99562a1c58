"""Several metrics at once: the same values as one by one, and what can be shared is shared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dialeval
from dialeval.registry.suite import Suite
from refusals import refused
from small_checkpoints import small_network

RESPONSES = ["i am fine thanks", "fish and chips", "i am fine thanks"]
CONTEXTS = [["hello there", "how are you"], ["hello"], ["hello there", "how are you"]]


@pytest.fixture(scope="module")
def folder(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("suite") / "checkpoint"
    small_network("density", tiny_encoder).save_pretrained(place)
    return place


@pytest.fixture(scope="module")
def suite(folder: Path) -> Suite:
    dialeval.register("density-again", "dialeval.papers.density:Density", scoring="euclidean")
    return dialeval.load(
        ["density", "density-again"], checkpoints={"density": str(folder), "density-again": str(folder)}, device="cpu"
    )


def test_values_are_those_of_the_metrics_alone(suite: Suite, folder: Path) -> None:
    together = suite.score(RESPONSES, CONTEXTS)
    for name in ("density", "density-again"):
        alone = dialeval.load(name, checkpoint=folder).score(RESPONSES, CONTEXTS)
        assert together[name].values == pytest.approx(alone.values, abs=1e-5)
    frame = together.to_pandas()
    assert list(frame.columns) == ["density", "density-again"]
    assert len(frame) == 3
    assert set(frame.attrs["signatures"]) == {"density", "density-again"}


def test_embeddings_are_shared(suite: Suite) -> None:
    first, second = (suite[name] for name in suite)
    tables = [metric.network.encoder.get_input_embeddings() for metric in (first, second)]
    assert tables[0] is tables[1]
    assert np.isfinite(suite.score(RESPONSES, CONTEXTS)["density"].values).all()


def test_two_rules_of_one_checkpoint_cost_one_pass(suite: Suite) -> None:
    first, second = (suite[name] for name in suite)
    assert first.network.encoder is second.network.encoder
    assert (first.scoring, second.scoring) == ("mahalanobis", "euclidean")
    passes: list[int] = []
    words = first.network.encoder.get_input_embeddings()
    hook = words.register_forward_pre_hook(lambda module, given: passes.append(len(given[0])))
    suite.score(["fish is nice", "see you next week"], [["hello there"], ["shall we go for a walk"]])
    hook.remove()
    assert sum(passes) == 2


def test_nothing_to_load() -> None:
    refused(ValueError, "metrics", dialeval.load, [])
    refused(ValueError, "quality", dialeval.load, ["density", "quality"])


def test_the_index_of_a_frame_is_kept(suite: Suite) -> None:
    rows = pd.DataFrame({"context": [["hello there"]] * 2, "response": ["fish is nice", "bye"]}, index=["b", "a"])
    assert list(suite.score(rows).to_pandas().index) == ["b", "a"]
