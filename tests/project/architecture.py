"""The rooms of the package and the imports between them, read from the sources.

`python tests/project/architecture.py` draws them.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "dialeval"
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"

_WIDTH, _HEIGHT, _BOX, _BOX_HEIGHT = 1080, 74, 136, 40


@cache
def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports() -> dict[str, frozenset[str]]:
    """The modules that each module imports, wherever in the file, for types only or not."""
    return {name: frozenset(_imported(path)) - {name} for name, path in modules().items()}


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules())
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in modules():
                    yield inner
                elif node.module in modules():
                    yield node.module


def room_of(module: str) -> str:
    """The folder or file directly below the package, as the page names it."""
    parts = module.split(".")
    if len(parts) == 1:
        return "__init__.py"
    return f"{parts[1]}/" if (PACKAGE / parts[1]).is_dir() else f"{parts[1]}.py"


def arrows() -> dict[str, dict[str, list[tuple[str, str]]]]:
    """Room -> room -> the imports (module, module) that tie them."""
    found: dict[str, dict[str, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for module, others in imports().items():
        for other in others:
            if room_of(module) != room_of(other):
                found[room_of(module)][room_of(other)].append((module, other))
    return found


def floors() -> dict[str, int]:
    """The floor of each room, as the table of the page says; rooms that are named twice are refused."""
    found: dict[str, int] = {}
    for number, rooms in re.findall(r"^\| (\d+) \| ([^|]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE):
        for room in re.findall(r"`([^`]+)`", rooms):
            assert room not in found, f"{room} stands on two floors"
            found[room] = int(number)
    return found


def walk() -> list[str]:
    """The files of the walk that the page tells, in order."""
    shown = PAGE.read_text(encoding="utf-8").partition("## The walk of a row")[2].partition("\n## ")[0]
    return re.findall(r"^\d+\. `([^`]+)`", shown, re.MULTILINE)


def drawing() -> str:
    """The floors as rows of boxes, and the arrows that no other way makes up for."""
    found, storeys = arrows(), defaultdict(list)
    for room, floor in floors().items():
        storeys[floor].append(room)
    top = max(storeys)
    place = {
        room: (_WIDTH / len(rooms) * (at + 0.5), (top - floor) * _HEIGHT + 34)
        for floor, rooms in storeys.items()
        for at, room in enumerate(rooms)
    }
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH + 40} {top * _HEIGHT + 10}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{_WIDTH + 40}" height="{top * _HEIGHT + 10}" fill="white"/>',
    ]
    for room in sorted(place):
        for other in sorted(found[room]):
            if other in place and not any(other in _below(between, found) for between in found[room]):
                (x, y), (u, v) = place[room], place[other]
                lines.append(
                    f'<line x1="{x:.0f}" y1="{y + _BOX_HEIGHT / 2:.0f}" x2="{u:.0f}" y2="{v - _BOX_HEIGHT / 2:.0f}" '
                    'stroke="#9aa4b2" stroke-width="1"/>'
                )
    for room, (x, y) in place.items():
        lines.append(
            f'<rect x="{x - _BOX / 2:.0f}" y="{y - _BOX_HEIGHT / 2:.0f}" width="{_BOX}" height="{_BOX_HEIGHT}" '
            'rx="5" fill="#eef4ff" stroke="#1f6feb"/>'
            f'<text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle" fill="#1d2129">{escape(room)}</text>'
        )
    lines += [
        f'<text x="{_WIDTH + 14}" y="{(top - floor) * _HEIGHT + 39}" fill="#9aa4b2">{floor}</text>' for floor in storeys
    ]
    return "\n".join([*lines, "</svg>", ""])


def _below(room: str, found: dict[str, dict[str, list[tuple[str, str]]]]) -> set[str]:
    seen: set[str] = set()
    waiting = list(found[room])
    while waiting:
        if (one := waiting.pop()) not in seen:
            seen.add(one)
            waiting += found[one]
    return seen


if __name__ == "__main__":
    PICTURE.write_text(drawing(), encoding="utf-8")
    print(PICTURE)
