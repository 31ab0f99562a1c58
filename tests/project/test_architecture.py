"""The page of the architecture and the imports say the same: no arrow up, no circle, every room named once."""

from graphlib import CycleError, TopologicalSorter

import pytest

import architecture

#: Files that a row enters on its way from `dialeval score` to its line of the output.
MOST_STEPS = 17


def test_the_page_names_every_room_and_no_other() -> None:
    rooms = {architecture.room_of(name) for name in architecture.modules()}
    listed = set(architecture.floors())
    new = sorted(rooms - listed)
    assert not new, f"{new[0]} has no place in the table of docs/architecture.md; add it there, then draw the page anew"
    assert listed == rooms


@pytest.mark.slow
def test_imports_go_down_only() -> None:
    floors = architecture.floors()
    upwards = [
        f"{module} (floor {floors[room]}) imports {other} (floor {floors[below]})"
        for room, others in architecture.arrows().items()
        for below, ties in others.items()
        for module, other in ties
        if floors[below] >= floors[room]
    ]
    assert not upwards


def test_no_files_import_each_other_in_a_circle() -> None:
    try:
        TopologicalSorter(architecture.imports()).prepare()
    except CycleError as circle:
        pytest.fail(f"a circle: {' -> '.join(circle.args[1])}")


def test_nothing_imports_training_or_modules_of_evaluate() -> None:
    for path in architecture.PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "from training" not in text, path
        assert "import training" not in text, path
        assert "import reproduce" not in text, path
        assert "from corpora" not in text, path


def test_the_walk_leads_through_files_that_are_there() -> None:
    steps = architecture.walk()
    assert 10 <= len(steps) <= MOST_STEPS
    for step in steps:
        assert (architecture.PACKAGE / step).is_file(), step


def test_the_picture_shows_every_room() -> None:
    picture = architecture.PICTURE.read_text(encoding="utf-8")
    for room in architecture.floors():
        assert f">{room}</text>" in picture, f"{room}; draw it anew: python tests/project/architecture.py"
    lines = [line for line in architecture.drawing().splitlines() if line.startswith("<line")]
    assert len(lines) > len(architecture.floors()) - 1  # whoever has no arrow at all is not part of the house
