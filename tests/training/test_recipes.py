"""The recipes of one approach differ in values, not in keys."""

from __future__ import annotations

from typing import Any

import pytest

from common import read_recipe
from training_runs import RECIPES


def keys(node: Any, path: str = "") -> set[str]:
    # How a layout spends its tokens on facts is said only where there are facts.
    if not isinstance(node, dict) or path in ("lora", "layout", "groups"):
        return {path}
    return {key for name, child in node.items() for key in keys(child, f"{path}.{name}".strip("."))}


@pytest.mark.parametrize("approach", ["cmn", "deb", "quantidce"])
def test_recipes_have_the_same_keys(approach: str) -> None:
    recipes = {path.stem: read_recipe(path) for path in sorted(RECIPES.glob(f"{approach}-*.yaml"))}
    assert {f"{approach}-minilm", f"{approach}-bert-base"} <= recipes.keys()
    for name, recipe in recipes.items():
        assert recipe["name"] == name
        assert keys(recipe) == keys(recipes[f"{approach}-minilm"]), name
