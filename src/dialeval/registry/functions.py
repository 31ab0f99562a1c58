"""A function of yours as a metric."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import math
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.core.exchange import BadRow, Exchange, a_kind
from dialeval.core.scores import Signature
from dialeval.core.specs import ANY_RANGE, LARGEST, Declared
from dialeval.io.harmless import one_line
from dialeval.registry.interface import CannotGoOn, Judged, Level, Metric, MetricInfo

#: Judges exchanges, one number each (None where it has none).
Judge = Callable[[list[Exchange]], Iterable[float | None]]


class FunctionFailed(ValueError):
    """A function of yours raised; what it raised is the cause."""


class FunctionMetric(Metric):
    """A function of a list of exchanges, dressed as a metric so that dialogues work too (mean over turns)."""

    def __init__(self, function: Judge, name: str, declared: Declared) -> None:
        self.function = function
        # The base class declares it for the class; every function is a metric of its own.
        more_is_better, summary = not declared.lower_is_better, "a function given by the user"
        info = MetricInfo(name, name, Level.TURN, more_is_better, declared.range, summary, english=False)
        self.info = info  # type: ignore[misc]
        self.declared = declared
        source = _source_of(function)
        self.known = source is not None
        self._digest = hashlib.sha256((source or repr(function)).encode()).hexdigest()[:16]

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """Call the function once with all exchanges."""
        given = self._called(list(exchanges))
        values = np.array([self._number(row, value) for row, value in enumerate(given)], dtype=np.float64)
        missing = map(int, np.flatnonzero(~np.isfinite(values)))
        unknown = {row: f"{self.info.name} gave {given[row]!r:.60} for it" for row in missing}
        return Judged(values, problems=unknown)

    def _called(self, exchanges: list[Exchange]) -> list[Any]:
        """What the function gives; its faults in one sentence, which keeps the cause for who calls from Python."""
        most = len(exchanges) + 1  # so that what never ends is noticed
        try:
            given = self.function(exchanges)
            if isinstance(given, str | bytes | Mapping | AbstractSet):  # letters, keys, or in an order of their own
                raise TypeError(f"it gave {a_kind(given)}, not a list of numbers")
            return list(islice(given, most))
        except (BadRow, CannotGoOn):  # they say it themselves
            raise
        except (Exception, SystemExit) as error:
            fault = one_line(f"{type(error).__name__}: {error}".removesuffix(": "))
            raise FunctionFailed(
                f"{_name_of(self.function, self.info.name)} failed: {fault}{_place_of(error, self.function)}; it is "
                "called with a list of exchanges (.context, .response, .references, .facts) and returns one number each"
            ) from error

    def _number(self, row: int, value: Any) -> float:
        try:
            number = math.nan if value is None else float(value)
            if LARGEST < abs(number) < math.inf:
                raise OverflowError
        except (TypeError, ValueError, OverflowError):
            raise BadRow(
                row, f"{self.info.name} gave {value!r:.60}; return a number to 1e100, or None where there is none"
            ) from None
        if problem := self.declared.problem(number):
            raise BadRow(row, f"{self.info.name} gave {problem}")
        return number

    def signature(self) -> Signature:
        """The digest covers the module's text, so that values of an older version are not reused."""
        return Signature({"metric": self.info.name, "python": self._digest})


def metric_class_of(target: str, declared: Declared) -> type[Metric]:
    """The class of metric that `package.module:name` names: a sub-class of `Metric`, or a function dressed as one."""
    thing = imported(target)
    if isinstance(thing, type) and issubclass(thing, Metric):
        if declared.lower_is_better or declared.range != ANY_RANGE:
            raise ValueError(f"{target} declares its own direction and range; leave lower_is_better and range out")
        return thing
    if not callable(thing):
        raise ValueError(f"{target} is {a_kind(thing)}; name a function of a list of exchanges, or a Metric")
    name = declared.name or target.rpartition(":")[2]

    class Given(FunctionMetric):
        """What was named, as a class, so that its declarations are known before it is loaded."""

        info = FunctionMetric(thing, name, declared).info

        def __init__(self) -> None:
            super().__init__(thing, name, declared)

    return Given


def _name_of(function: Judge, name: str) -> str:
    """The name under which `-m` finds a function, else that of its metric."""
    module, qualified = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    return f"python:{module}:{qualified}" if module and qualified and module != "__main__" else name


def _place_of(error: BaseException, function: Judge) -> str:
    """The last line of the function's own file that was reached, else where it begins; nothing if it has no file."""
    try:
        file = inspect.getfile(function)
    except TypeError:
        return ""
    reached = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    code = getattr(function, "__code__", None)
    line = reached[-1] if reached else getattr(code, "co_firstlineno", None)
    return f" ({Path(file).name}, line {line})" if line else ""


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
    module, _, attribute = target.partition(":")
    if not (attribute and all(map(str.isidentifier, module.split(".")))):
        raise ValueError(f"python:{target} names no function; write python:package.module:function")
    # As for `python -m`, modules of the folder one stands in are found; at the end, so that they hide nothing.
    if not {"", str(Path.cwd())} & set(sys.path):
        sys.path.append(str(Path.cwd()))
    try:
        value = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"python:{target}: there is no module {error.name}; run from its folder or set PYTHONPATH"
        ) from None
    except (Exception, SystemExit) as error:  # whatever stands in it
        fault = one_line(f"{type(error).__name__}: {error}".removesuffix(": "))
        raise FunctionFailed(f"python:{target}: {module} cannot be imported ({fault})") from error
    if not hasattr(value, attribute):
        raise ValueError(f"python:{target}: {module} has no {attribute}; check the name")
    return getattr(value, attribute)
