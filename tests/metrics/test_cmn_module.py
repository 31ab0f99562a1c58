"""The `evaluate` module of CMN over a tiny checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cmn_networks import CONTEXTS, REFERENCES, RESPONSES, make_network
from dialeval.approaches.cmn import Cmn
from dialeval.evaluate_module import loaded

evaluate = pytest.importorskip("evaluate")

FOLDER = Path(__file__).parents[2] / "metrics" / "cmn"


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    home = tmp_path_factory.mktemp("evaluate")
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(evaluate.config, "HF_EVALUATE_OFFLINE", True)
        changed.setattr(evaluate.config, "HF_METRICS_CACHE", home / "metrics")
        yield evaluate.load(str(FOLDER))
    loaded.cache_clear()


def test_module_gives_what_the_metric_gives(module: Any, tiny_encoder: Path, tmp_path: Path) -> None:
    make_network(tiny_encoder).save_pretrained(tmp_path)
    options = {"checkpoint": str(tmp_path), "device": "cpu"}
    rows = {"predictions": RESPONSES, "contexts": CONTEXTS, "references": REFERENCES}
    result = module.compute(**rows, **options)
    expected = Cmn(tmp_path, device="cpu").score(RESPONSES, CONTEXTS, REFERENCES)
    assert result["scores"] == pytest.approx(expected.values.tolist(), abs=1e-4)
    assert result["cmn"] == pytest.approx(expected.aggregate, abs=1e-4)
    assert result["signature"] == str(expected.signature)
    with pytest.raises(ValueError, match="row 0: cmn compares with references"):
        module.compute(predictions=RESPONSES, contexts=CONTEXTS, **options)


def test_page_names_its_metric() -> None:
    page = (FOLDER / "README.md").read_text("utf-8")
    assert 'evaluate.load("dialeval/cmn")' in page
    assert "- **cmn** (float)" in page
