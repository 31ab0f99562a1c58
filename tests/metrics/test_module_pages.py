"""The modules' pages as Spaces run them: app.py starts, scores what is typed, and shows the card."""

import os
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
pytest.importorskip("gradio")

from gradio_client import Client
from gradio_client.exceptions import AppError

import dialeval
from dialeval import registry
from dialeval.hub.evaluate_module import loaded
from dialeval.hub.modules import ROWS, module_folders
from small_checkpoints import small_checkpoint

FOLDERS = {folder.name: folder for folder in module_folders()}


@pytest.fixture(scope="module", params=["deb", "fbd"])
def app(
    request: pytest.FixtureRequest, tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Client, Any]]:
    """The page of a metric of turns and of one of systems, with weights that load at once, and a client of it."""
    name = request.param
    weights = small_checkpoint(name, tiny_encoder, tmp_path_factory.mktemp(name)) if name == "deb" else tiny_encoder
    with pytest.MonkeyPatch.context() as patch:
        entry = registry.REGISTRY[name]
        patch.setitem(registry.REGISTRY, name, registry.RegisteredMetric(entry.target, {"checkpoint": str(weights)}))
        loaded.cache_clear()
        page = runpy.run_path(str(FOLDERS[name] / "app.py"))["page"]
        _, address, _ = page.launch(prevent_thread_lock=True, quiet=True, server_name="127.0.0.1")
        client = Client(address, verbose=False)
        yield name, client, page
        client.close()
        page.close()
    loaded.cache_clear()


def table(rows: list[list[Any]]) -> dict[str, Any]:
    return {"headers": ["context", "reply", "reference"], "data": rows}


@pytest.mark.slow
def test_it_scores_the_rows_that_are_filled(app: tuple[str, Client, Any]) -> None:
    name, client, _ = app
    value, values, signature = client.predict(table([*ROWS, ["", None, " "]]), api_name="/judge")
    turns = [[turn.strip() for turn in context.split("|")] for context, *_ in ROWS]
    scores = dialeval.load(name).score([row[1] for row in ROWS], turns, [row[2] for row in ROWS])
    assert value == pytest.approx(scores.aggregate, rel=1e-5, abs=1e-6)
    assert [row[0] for row in values["data"]] == pytest.approx(scores.values.tolist(), rel=1e-5, abs=1e-6)
    assert signature == str(scores.signature)


@pytest.mark.slow
@pytest.mark.parametrize(("reply", "named"), [(" ", "row 0"), ("word " * 5_000, "20,000")])
def test_what_cannot_be_scored_is_refused(app: tuple[str, Client, Any], reply: str, named: str) -> None:
    _, client, _ = app
    with pytest.raises(AppError) as refused:
        client.predict(table([["Hi.", reply, "Hello."]]), api_name="/judge")
    assert named in str(refused.value)


def test_all_modules_have_the_same_page() -> None:
    assert len({(folder / "app.py").read_bytes() for folder in FOLDERS.values()}) == 1
