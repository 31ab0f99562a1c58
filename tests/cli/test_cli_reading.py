"""Every command that reads rows reads them with the same options."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from dialeval.cli import build_app
from dialeval.cli import options as reading

OPTIONS = set(inspect.signature(reading.source).parameters) - {"input"}


def commands(group: Any, before: str = "") -> Iterator[tuple[str, set[str]]]:
    """Every command with the names of its parameters."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", {parameter.name for parameter in command.params}


READERS = [(name, taken) for name, taken in commands(get_command(build_app())) if "columns" in taken]


@pytest.mark.parametrize(("name", "taken"), READERS, ids=[name for name, _ in READERS])
def test_a_command_has_all_options_of_reading(name: str, taken: set[str]) -> None:
    wanted = OPTIONS - {"show"} if name == "show" else OPTIONS  # which shows rows in any case
    assert taken >= wanted


def test_the_commands_that_read_rows_are_known() -> None:
    known = {"score", "llm-score", "score-ray", "rank", "gate", "compare", "tune", "robustness", "plot scores", "show"}
    assert {name for name, _ in READERS} == known
