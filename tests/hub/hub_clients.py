"""What real clients do with a Hub, run as a process of its own: HF_ENDPOINT is read when they are imported.

Prints one JSON document. Nothing in here knows that the Hub is an imitation.
"""

import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evaluate
from huggingface_hub import snapshot_download  # noqa: F401 - named by the tests
from transformers import AutoModel

import dialeval


def modules(rows: dict[str, Any], checkpoints: dict[str, str]) -> dict[str, Any]:
    loaded = {name: evaluate.load(f"dialeval/{name}") for name in checkpoints}
    return {name: module.compute(**rows, checkpoint=checkpoints[name]) for name, module in loaded.items()}


def pinned_module(revision: str) -> Any:
    return evaluate.load("dialeval/density", revision=revision).__class__.__doc__


def auto_model(checkpoint: str) -> str:
    dialeval.register_auto_model()
    return type(AutoModel.from_pretrained(checkpoint)).__name__


def scored(rows: dict[str, Any], checkpoint: str, revision: str | None = None) -> Any:
    metric = dialeval.load("density", checkpoint=checkpoint, revision=revision)
    return metric.score(rows["predictions"], rows["contexts"]).to_dict()


def run(task: Callable[..., Any], *given: Any) -> dict[str, Any]:
    try:
        return {"value": task(*given)}
    except Exception as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    orders = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps([run(globals()[name], *given) for name, *given in orders]))
