"""A function of yours as a metric."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.agreement.specs import Declared
from dialeval.exchange import Exchange
from dialeval.metric import Judged, Level, Metric, MetricInfo
from dialeval.scores import Signature

#: Judges exchanges, one number each (None where it has none).
Judge = Callable[[list[Exchange]], Iterable[float | None]]


class FunctionMetric(Metric):
    """A function of a list of exchanges, dressed as a metric so that dialogues work too (mean over turns)."""

    def __init__(self, function: Judge, name: str, declared: Declared) -> None:
        self.function = function
        # The base class declares it for the class; every function is a metric of its own.
        self.info = MetricInfo(  # type: ignore[misc]
            name, name, Level.TURN, not declared.lower_is_better, declared.range, "a function given by the user"
        )
        source = _source_of(function)
        self.known = source is not None
        self._digest = hashlib.sha256((source or repr(function)).encode()).hexdigest()[:16]

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """Call the function once with all exchanges."""
        return Judged(np.array([math.nan if v is None else float(v) for v in self.function(list(exchanges))]))

    def signature(self) -> Signature:
        """The digest covers the module's text, so that values of an older version are not reused."""
        return Signature({"metric": self.info.name, "python": self._digest})


def _source_of(function: Judge) -> str | None:
    """The text of the module that defines a function; None where it cannot be known (a notebook, a closure)."""
    if inspect.isfunction(function) and (function.__closure__ or function.__module__ == "__main__"):
        return None
    try:
        return Path(inspect.getfile(function)).read_text(encoding="utf-8") + function.__qualname__
    except (TypeError, OSError, AttributeError):
        return None


def imported(target: str) -> Any:
    """What `package.module:name` names."""
    module, colon, attribute = target.partition(":")
    if not colon:
        raise ValueError(f"python:{target} names no function; write python:package.module:function")
    # As for `python -m`, modules of the folder one stands in are found; at the end, so that they hide nothing.
    if not {"", str(Path.cwd())} & set(sys.path):
        sys.path.append(str(Path.cwd()))
    try:
        return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"python:{target}: there is no module {error.name}; go to its folder, or name that in PYTHONPATH"
        ) from None
    except AttributeError:
        raise ValueError(f"python:{target}: {module} has no {attribute}; check the name") from None
