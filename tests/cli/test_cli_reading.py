"""Every command that reads rows reads them with the same options."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from dialeval.cli import build_app
from dialeval.cli import options as reading

OPTIONS = set(inspect.signature(reading.source).parameters) - {"input"}


def commands(app: typer.Typer, before: str = "") -> Iterator[tuple[str, Any]]:
    for one in app.registered_commands:
        yield f"{before}{one.name or one.callback.__name__}", one.callback  # type: ignore[union-attr]
    for group in app.registered_groups:
        yield from commands(group.typer_instance, f"{group.name} ")  # type: ignore[arg-type]


#: Ray Data has readers of its own.
OTHER_READERS = {"score-ray"}
READERS = [
    (name, call)
    for name, call in commands(build_app())
    if "columns" in inspect.signature(call).parameters and name not in OTHER_READERS
]


@pytest.mark.parametrize(("name", "call"), READERS, ids=[name for name, _ in READERS])
def test_a_command_has_all_options_of_reading(name: str, call: Any) -> None:
    wanted = OPTIONS - {"show"} if name == "show" else OPTIONS  # which shows rows in any case
    assert set(inspect.signature(call).parameters) >= wanted


def test_the_commands_that_read_rows_are_known() -> None:
    known = {"score", "llm-score", "rank", "gate", "compare", "tune", "robustness", "plot scores"}
    assert {name for name, _ in READERS} >= known
