"""DENSITY with its embedded weights gives the same numbers through every entrance."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dialeval
from dialeval.cli import build_app
from dialeval.evaluate_module import loaded
from dialeval.module_install import module_folders
from dialeval.weights.find import embedded_checkpoints

pytestmark = [
    pytest.mark.slow,
    pytest.mark.encoder,
    pytest.mark.skipif("density-minilm" not in embedded_checkpoints(), reason="no DENSITY weights are embedded yet"),
]

CONTEXTS = [["Did you find your keys?", "Not yet, I have looked everywhere."]] * 2
RESPONSES = ["Maybe you left them in the car?", "Purple forks sing under nine."]


def test_python_command_and_module_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate = pytest.importorskip("evaluate")
    expected = dialeval.load("density").score(RESPONSES, CONTEXTS)

    rows = [{"context": context, "response": response} for context, response in zip(CONTEXTS, RESPONSES, strict=True)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    given = ["score", "-m", "density", "-i", str(tmp_path / "rows.jsonl"), "-o", "-"]
    done = CliRunner().invoke(build_app(), given)
    assert [json.loads(line)["density"] for line in done.stdout.splitlines()] == pytest.approx(
        expected.values, abs=1e-4
    )
    assert str(expected.signature) in done.stderr

    monkeypatch.setattr(evaluate.config, "HF_EVALUATE_OFFLINE", True)
    monkeypatch.setattr(evaluate.config, "HF_METRICS_CACHE", tmp_path)
    loaded.cache_clear()
    folder = next(folder for folder in module_folders() if folder.name == "density")
    module = evaluate.load(str(folder), keep_in_memory=True)
    result = module.compute(predictions=RESPONSES, contexts=CONTEXTS)
    assert result["scores"] == pytest.approx(expected.values, abs=1e-4)
    assert result["density"] == pytest.approx(expected.aggregate, abs=1e-4)
    human = module.compute(predictions=RESPONSES, contexts=CONTEXTS, scale="human_percentile")
    assert human["signature"].startswith(f"{expected.signature}|scale:human_percentile@")
    assert all(0 <= share <= 1 for share in human["scores"])
