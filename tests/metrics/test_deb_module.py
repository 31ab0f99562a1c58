"""The `evaluate` modules of DEB and QuantiDCE over tiny checkpoints, alone and combined."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dialeval.engine.formatting import PairFormat
from dialeval.evaluate_module import loaded
from dialeval.registry import metric_class
from dialeval.weights.config import CheckpointConfig, LoraSettings, encoder_source

evaluate = pytest.importorskip("evaluate")

ROOT = Path(__file__).parents[2]
ROWS: dict[str, Any] = {
    "predictions": ["fish and chips please", "see you tomorrow"],
    "contexts": [["what do you like to eat"], ["hello there", "how are you"]],
}


@pytest.fixture(scope="module", autouse=True)
def _private_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    home = tmp_path_factory.mktemp("evaluate")
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(evaluate.config, "HF_EVALUATE_OFFLINE", True)
        changed.setattr(evaluate.config, "HF_METRICS_CACHE", home / "metrics")
        yield
    loaded.cache_clear()


@pytest.mark.parametrize("name", ["deb", "quantidce"])
def test_module_gives_what_the_metric_gives(name: str, tiny_encoder: Path, tmp_path: Path) -> None:
    found, _ = metric_class(name)
    config = CheckpointConfig(
        name, encoder=encoder_source(str(tiny_encoder), "lora"), layout=PairFormat(max_length=32, segment_ids=True)
    )
    network: Any = found.network_class.create(config, lora=LoraSettings(rank=2, alpha=4))  # type: ignore[attr-defined]
    network.save_pretrained(tmp_path)
    module = evaluate.load(str(ROOT / "metrics" / name))
    result = module.compute(**ROWS, checkpoint=str(tmp_path), device="cpu")
    metric: Any = found(tmp_path, device="cpu")  # type: ignore[call-arg]
    expected = metric.score(ROWS["predictions"], ROWS["contexts"])
    assert result["scores"] == pytest.approx(expected.values.tolist(), abs=1e-6)
    assert result[name] == pytest.approx(expected.aggregate, abs=1e-6)
    low, high = found.info.range
    assert all(low < score < high for score in result["scores"])
    assert f"Range {low:g} to {high:g}" in module.description


@pytest.mark.parametrize("name", ["deb", "quantidce"])
def test_page_names_its_metric(name: str) -> None:
    page = (ROOT / "metrics" / name / "README.md").read_text("utf-8")
    assert f'evaluate.load("dialeval/{name}")' in page
    assert f"- **{name}** (float)" in page
