"""The modules' pages as Spaces run them: app.py starts, scores what is typed, and shows the card."""

from __future__ import annotations

import ast
import os
import re
import runpy
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
pytest.importorskip("gradio")

from gradio_client import Client
from gradio_client.exceptions import AppError

import dialeval
from dialeval import module_page, registry
from dialeval.approaches import _NETWORKS
from dialeval.evaluate_module import loaded
from dialeval.module_install import module_folders
from dialeval.module_page import EXAMPLES, ROWS, card_text, direction
from dialeval.registry import metric_class
from small_checkpoints import small_checkpoint

FOLDERS = {folder.name: folder for folder in module_folders()}


@pytest.fixture(scope="module", autouse=True)
def _tiny_weights(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every module finds weights that load at once."""
    home = tmp_path_factory.mktemp("weights")
    with pytest.MonkeyPatch.context() as patch:
        for name in FOLDERS:
            known = name in _NETWORKS
            checkpoint = small_checkpoint(name, tiny_encoder, home / name) if known else tiny_encoder
            entry = registry.REGISTRY[name]
            patch.setitem(
                registry.REGISTRY, name, registry.RegisteredMetric(entry.target, {"checkpoint": str(checkpoint)})
            )
        loaded.cache_clear()
        yield
    loaded.cache_clear()


@pytest.fixture(scope="module", params=FOLDERS)
def app(request: pytest.FixtureRequest) -> Iterator[tuple[str, Client, Any]]:
    """A module's page, started once, and a client of it."""
    page = runpy.run_path(str(FOLDERS[request.param] / "app.py"))["page"]
    _, address, _ = page.launch(prevent_thread_lock=True, quiet=True, server_name="127.0.0.1")
    client = Client(address, verbose=False)
    yield request.param, client, page
    client.close()
    page.close()


def typed(name: str, *, reply: str | None = None) -> list[Any]:
    """What a visitor types into a module's page."""
    if metric_class(name)[0].info.level == "system":
        rows = [[context, reply if reply is not None else text, person] for context, text, person in ROWS]
        return [{"headers": ["context", "reply", "reference"], "data": rows}]
    context, text, reference = EXAMPLES[0]
    fields = [context, reply if reply is not None else text]
    return [*fields, reference] if "references" in metric_class(name)[0].info.needs else fields


@pytest.mark.slow
def test_it_scores_what_is_typed(app: tuple[str, Client, Any]) -> None:
    name, client, _ = app
    value, message, signature = client.predict(*typed(name), api_name="/judge")
    one = dialeval.load(name)
    rows = ROWS if one.info.level == "system" else [EXAMPLES[0]]
    turns = [[turn.strip() for turn in context.replace("\n", "|").split("|")] for context, *_ in rows]
    scores = one.score([row[1] for row in rows], turns, [row[2] for row in rows])
    assert value == pytest.approx(scores.aggregate, rel=1e-5, abs=1e-6)
    assert signature == str(scores.signature)
    assert message.startswith("Higher is better" if one.info.higher_is_better else "Lower is better")
    assert ("of human replies score lower" in message) == (name in _NETWORKS)
    assert ("interval" in message) == (one.info.level == "system")


@pytest.mark.slow
def test_what_cannot_be_scored_is_said(app: tuple[str, Client, Any]) -> None:
    name, client, _ = app
    with pytest.raises(AppError, match="row 0: response is empty"):
        client.predict(*typed(name, reply=" "), api_name="/judge")
    with pytest.raises(AppError, match="20,000 characters"):
        client.predict(*typed(name, reply="word " * 5_000), api_name="/judge")


def test_the_card_is_on_the_page(app: tuple[str, Client, Any]) -> None:
    name, _, page = app
    shown = [block["props"].get("value") for block in page.config["components"] if block["type"] == "markdown"]
    assert card_text(FOLDERS[name] / "README.md") in shown
    assert direction(metric_class(name)[0].info) in str(shown[0])


def test_nothing_on_the_page_comes_from_elsewhere(app: tuple[str, Client, Any]) -> None:
    _, _, page = app
    assert page.analytics_enabled is False
    with urllib.request.urlopen(page.local_url) as answer:
        html = answer.read().decode()
    loaded_from = re.findall(r'<(?:script|link|img|iframe)[^>]*?(?:src|href)="([^"]+)"', html)
    assert loaded_from
    assert not [address for address in loaded_from if re.match(r"(https?:)?//(?!127\.0\.0\.1)", address)]


def test_rows_that_were_left_blank_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table on a page has empty rows, and a client may send fewer columns."""
    scored: list[Any] = []

    class Gradio:
        Dataframe = staticmethod(lambda *given, **named: None)

    monkeypatch.setattr(module_page, "_score", lambda gr, name, rows: scored.extend(rows))
    _, judge = module_page._row_inputs(Gradio, "fbd", metric_class("fbd")[0].info)
    judge([["a | b", "c", "d"], ["", None, " "], ["a", "c"]])
    assert scored == [[["a", "b"], "c", "d"], [["a"], "c", ""]]


@pytest.mark.parametrize("name", FOLDERS)
def test_all_pages_are_built_alike(name: str) -> None:
    def calls(folder: str) -> str:
        tree = ast.parse((FOLDERS[folder] / "app.py").read_text(encoding="utf-8"))
        tree.body = tree.body[1:]
        return ast.dump(tree).replace(f"'{folder}'", "NAME")

    assert calls(name) == calls("density")


def test_directions_in_words() -> None:
    from dataclasses import replace

    info = metric_class("density")[0].info
    ranges = {(-1.0, 1.0): "-1 to 1", (0.0, float("inf")): "0 or more", (float("-inf"), 0.0): "0 or less"}
    assert direction(info) == "**Higher is better** (without bounds)."
    for bounds, message in ranges.items():
        assert direction(replace(info, range=bounds, higher_is_better=False)) == f"**Lower is better** ({message})."


def test_a_card_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Title\n\nText.\n\n## Part\n")
    assert card_text(tmp_path / "README.md") == "Text.\n\n## Part"
    assert module_page.MAX_ROWS == 500
