"""No regular expression takes longer than its text asks for: each reads 100,000 characters of many kinds."""

import ast
import importlib
import pkgutil
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import dialeval
from dialeval.io.files import hidden_names
from dialeval.llm.reading import aspect_pattern

#: Characters, and seconds of the processor in which they are read. A linear expression takes a hundredth of a second
#: for the long text, a quadratic one more than a second; what is quick on the short one need not read the long one.
SHORT, LONG = (20_000, 0.02), (100_000, 0.8)
UNITS = [
    "a", "A", "1", " ", "\n", ".", ",", "-", "_", "'", '"', "(", "[", "{", "<", ">", "/", "\\", "`", "*", "#", ":", "=",
    "@", "~", "a.", "a@", "a ", "A ", "1 ", "1.", "1/", "1:", "a\n", "a'", '{"', "<a", "é", "中", "\u200b",
]  # fmt: skip
PACKAGE = Path(dialeval.__file__).parent
PAGE = PACKAGE.parents[1] / "spaces" / "side_by_side"
CALLS = {f"re.{name}" for name in "sub split search match findall finditer fullmatch compile".split()}
#: Put together while the program runs: what each may look like.
BUILT = {"aspect_pattern": aspect_pattern("grammar"), "hidden_names": hidden_names(Path("scores.jsonl"))}


def written(path: Path, names: dict[str, Any]) -> Iterator[re.Pattern[Any]]:
    """Every pattern that stands in a file; one that a function puts together must be known to `BUILT`."""
    tree = ast.parse(path.read_text("utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    within = {call: function.name for function in functions for call in ast.walk(function)}
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) in CALLS:
            flags = [keyword.value for keyword in call.keywords if keyword.arg == "flags"]
            if ast.unparse(call.func) == "re.compile":
                flags += call.args[1:]
            try:
                yield re.compile(*(eval(ast.unparse(part), names) for part in (call.args[0], *flags)))
            except NameError:
                assert within[call] in BUILT, f"{path}:{call.lineno}: name the pattern in BUILT"


def all_patterns() -> list[re.Pattern[Any]]:
    found = list(BUILT.values())
    for module in pkgutil.walk_packages(dialeval.__path__, "dialeval."):
        if not module.name.endswith("__main__"):
            names = vars(importlib.import_module(module.name))
            found += written(Path(names["__file__"]), names)
    for path in PAGE.glob("*.py"):
        found += written(path, {"re": re})
    return sorted(set(found), key=lambda pattern: (str(pattern.pattern), pattern.flags))


def literals(tree: Any) -> Iterator[str]:
    """What a pattern asks for by name: its runs of letters, and one character of every set."""
    run = ""
    for kind, value in tree:
        if kind is _constants.LITERAL:
            run += chr(value)
            continue
        if run:
            yield run
            run = ""
        if kind is _constants.IN:
            yield from (chr(inner) for what, inner in value if what is _constants.LITERAL)
            yield from (chr(inner[0]) for what, inner in value if what is _constants.RANGE)
        elif kind is _constants.BRANCH:
            for branch in value[1]:
                yield from literals(branch)
        elif kind is _constants.SUBPATTERN:
            yield from literals(value[3])
        elif kind in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
            yield from literals(value[2])
        elif kind in (_constants.ASSERT, _constants.ASSERT_NOT):
            yield from literals(value[1])
    if run:
        yield run


def texts(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str]]:
    """Beginnings and what follows them again and again: marks, and what the pattern itself asks for."""
    parsed = _parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    known = list(dict.fromkeys(literals(parsed)))[:15]
    for unit in dict.fromkeys([*UNITS, *known]):
        yield "", unit
    for begin in known:
        yield begin, " "
        yield "", f"{begin} "


class TooSlow(Exception):
    """An expression took more than linear time."""


def _stop(*_: Any) -> None:
    raise TooSlow


def is_quick(pattern: re.Pattern[Any], begin: str, unit: str, length: int, seconds: float) -> bool:
    """Whether a pattern reads a text of so many characters in so many seconds of the processor."""
    text: Any = begin + unit * (length // len(unit))
    text = text if isinstance(pattern.pattern, str) else text.encode()
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        pattern.fullmatch(text)
        pattern.sub(text[:0], text)
    except TooSlow:
        return False
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return True


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no timer of the processor's time here")
def test_no_expression_is_worse_than_linear() -> None:
    patterns = all_patterns()
    assert len(patterns) > 60
    before = signal.signal(signal.SIGVTALRM, _stop)
    try:
        slow = [
            (pattern.pattern, *text)
            for pattern in patterns
            for text in texts(pattern)
            if not is_quick(pattern, *text, *SHORT) and not is_quick(pattern, *text, *LONG)
        ]
    finally:
        signal.signal(signal.SIGVTALRM, before)
    assert slow == []
