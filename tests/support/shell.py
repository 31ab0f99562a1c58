"""What a user has before him: files of rows, and the command."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from dialeval.cli import build_app


def write_rows(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """A file of JSON lines; folders that it needs are made."""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def read_rows(path: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


def invoke(*words: object, code: int = 0) -> Result:
    """What the command says, which has to end with this code."""
    ended = CliRunner().invoke(build_app(), list(map(str, words)))
    assert ended.exit_code == code, ended.output
    return ended
