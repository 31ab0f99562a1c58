"""The `evaluate` modules of metrics with weights, over tiny checkpoints: they give what the metrics give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cmn_networks import CONTEXTS, REFERENCES, RESPONSES
from dialeval.core.exchange import BadRow
from dialeval.hub.evaluate_module import loaded
from dialeval.hub.modules import module_folders
from dialeval.registry import metric_class
from small_checkpoints import small_checkpoint

evaluate = pytest.importorskip("evaluate")

FOLDERS = {folder.name: folder for folder in module_folders()}
ROWS: dict[str, Any] = {"predictions": RESPONSES, "contexts": CONTEXTS, "references": REFERENCES}


@pytest.fixture(autouse=True)
def _private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(evaluate.config, "HF_EVALUATE_OFFLINE", True)
    monkeypatch.setattr(evaluate.config, "HF_METRICS_CACHE", tmp_path / "metrics")
    yield
    loaded.cache_clear()


@pytest.mark.parametrize("name", ["cmn", "deb", "quantidce"])
def test_module_gives_what_the_metric_gives(name: str, tiny_encoder: Path, tmp_path: Path) -> None:
    options = {"checkpoint": str(small_checkpoint(name, tiny_encoder, tmp_path / "checkpoint")), "device": "cpu"}
    module = evaluate.load(str(FOLDERS[name]))
    result = module.compute(**ROWS, **options)
    found: Any = metric_class(name)[0]
    expected = found(**options).score(RESPONSES, CONTEXTS, REFERENCES)
    assert result["scores"] == pytest.approx(expected.values.tolist(), abs=1e-4)
    assert result[name] == pytest.approx(expected.aggregate, abs=1e-4)
    assert result["signature"] == str(expected.signature)
    if "references" in found.info.needs:
        with pytest.raises(BadRow) as refused:
            module.compute(predictions=RESPONSES, contexts=CONTEXTS, **options)
        assert refused.value.row == 0
