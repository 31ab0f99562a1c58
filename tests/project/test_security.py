"""Every promise of SECURITY.md names the tests that show it, and they are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_each_promise_has_its_test() -> None:
    promises = re.findall(r"^- (.*)$", (ROOT / "SECURITY.md").read_text("utf-8"), re.MULTILINE)
    assert len(promises) > 30
    for promise in promises:
        named = re.findall(r"`(tests/\S+\.py)::(\w+)`", promise)
        assert named, promise
        for path, name in named:
            assert re.search(rf"^def {name}\(", (ROOT / path).read_text("utf-8"), re.MULTILINE), f"{path}::{name}"
