"""What real clients do with a Hub, run as a process of its own: HF_ENDPOINT is read when they are imported.

Prints one JSON document. Nothing in here knows that the Hub is an imitation.
"""

import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

PREDICTIONS = ["i am fine thanks", "fish and chips"]
CONTEXTS = [["hello there", "how are you"], ["what do you like to eat"]]
REFERENCES = [["i am fine"], ["fish please"]]


def modules(checkpoints: dict[str, str]) -> dict[str, Any]:
    import evaluate

    rows = {"predictions": PREDICTIONS, "contexts": CONTEXTS, "references": REFERENCES}
    loaded = {name: evaluate.load(f"dialeval/{name}") for name in checkpoints}
    return {name: module.compute(**rows, checkpoint=checkpoints[name]) for name, module in loaded.items()}


def pinned_module(revision: str) -> Any:
    import evaluate

    return evaluate.load("dialeval/density", revision=revision).__class__.__doc__


def auto_model(checkpoint: str) -> str:
    from transformers import AutoModel

    import dialeval

    dialeval.register_auto_model()
    return type(AutoModel.from_pretrained(checkpoint)).__name__


def pinned_model(revision: str) -> Any:
    import dialeval

    metric = dialeval.load("density", checkpoint="dialeval/density-tiny", revision=revision)
    return metric.score(PREDICTIONS, CONTEXTS).to_dict()


def snapshot(repo_id: str, revision: str | None = None) -> str:
    from huggingface_hub import snapshot_download

    return str(snapshot_download(repo_id, revision=revision))


def hidden() -> Any:
    import dialeval

    return dialeval.load("density", checkpoint="dialeval/secret").score(PREDICTIONS, CONTEXTS).aggregate


def run(task: Callable[..., Any], *given: Any) -> dict[str, Any]:
    try:
        return {"value": task(*given)}
    except Exception as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    orders = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps([run(globals()[name], *given) for name, *given in orders]))
