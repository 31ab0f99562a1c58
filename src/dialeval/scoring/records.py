"""Whether a finished chunk that was read back is one that this run could have written."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from dialeval.scoring.task import Chunk, Task, unscored


def could_be_ours(record: Mapping[str, Any], chunk: Chunk, task: Task) -> bool:
    """Whether a record has everything that scoring the chunk gives, each of its kind. What the values are only the
    metric knows."""
    if not task.of_rows:
        return record == unscored(chunk)
    names, values = set(task.of_rows), record["values"]
    return (
        record.get("row") == chunk.rows
        and record.get("id") == [item.id for item in chunk.items]
        and record.get("system") == [item.system for item in chunk.items]
        and values.keys() == set(task.columns)
        and all(all(map(_kind(column in task.texts), values[column])) for column in task.columns)
        and all(len(values[column]) == len(chunk.rows) for column in task.columns)
        and _is_count(record.get("n_empty"))
        and _is_by_name(record.get("n_truncated"), names, _is_count)
        and record["n_truncated"].keys() == names
        and _is_by_name(record.get("signature"), names, lambda one: isinstance(one, str))
        and record["signature"].keys() == names
        and _is_by_name(record.get("problems", {}), names, _are_problems)
        and _is_by_name(record.get("usage", {}), names, lambda one: _is_by_name(one, None, _is_number))
    )


def _kind(is_text: bool) -> Callable[[Any], bool]:
    return lambda one: one is None or (isinstance(one, str) if is_text else _is_number(one))


def _is_number(one: Any) -> bool:
    """A number that a table can hold: no truth value, nothing infinite, no integer beyond any float."""
    try:
        return isinstance(one, int | float) and not isinstance(one, bool) and math.isfinite(one)
    except OverflowError:
        return False


def _is_count(one: Any) -> bool:
    return isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 2**63


def _is_by_name(found: Any, names: set[str] | None, is_sound: Callable[[Any], bool]) -> bool:
    return isinstance(found, dict) and (names is None or found.keys() <= names) and all(map(is_sound, found.values()))


def _are_problems(found: Any) -> bool:
    return isinstance(found, list) and all(
        isinstance(one, list) and len(one) == 2 and _is_count(one[0]) and isinstance(one[1], str) for one in found
    )
