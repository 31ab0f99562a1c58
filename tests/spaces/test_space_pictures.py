"""The documentation's pictures show what ships: `make screenshots` after a checkpoint has changed."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("PIL")
pytest.importorskip("playwright.sync_api")

from dialeval.weights.config import CheckpointConfig
from dialeval.weights.find import WEIGHTS, embedded_checkpoints, weights_digest
from space_screenshots import IMAGES, SIGNATURES, checkpoints, measured_signatures

STALE = "the pictures are not of what ships; run: make screenshots"


def test_every_picture_says_whose_scores_it_shows() -> None:
    found = json.loads(SIGNATURES.read_text("utf-8"))
    assert {f"{name}.png" for name in found} == {path.name for path in IMAGES.glob("*.png")}
    assert all(found.values())


@pytest.mark.parametrize("picture", ["compare", "dark", "phone", "file"])
def test_scores_in_the_pictures_are_those_of_the_embedded_checkpoints(picture: str) -> None:
    found = checkpoints(json.loads(SIGNATURES.read_text("utf-8"))[picture])
    shipped = {name: f"{name}@{weights_digest(WEIGHTS / name)[:12]}" for name in embedded_checkpoints()}
    assert found, STALE
    assert found <= set(shipped.values()), STALE
    if picture == "file":  # there every metric is ticked, each with the checkpoint that it takes by itself
        assert found == {shipped[name] for name in shipped if is_default(name)}, STALE


def is_default(name: str) -> bool:
    return name == f"{CheckpointConfig.read(WEIGHTS / name).approach}-minilm"


def test_the_trust_page_is_shown_with_the_committed_results() -> None:
    assert json.loads(SIGNATURES.read_text("utf-8"))["trust"] == measured_signatures(), STALE


def test_checkpoints_are_read_off_signatures() -> None:
    lines = ["metric:deb|checkpoint:deb-minilm@0123456789ab|dtype:float32", "metric:fbd|encoder:a/b@ffff"]
    assert checkpoints(lines) == {"deb-minilm@0123456789ab"}
