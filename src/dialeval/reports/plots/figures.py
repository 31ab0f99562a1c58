"""Figures, grids of panels, and how they get into files.

Figures are made without pyplot: no global state, no window, safe in threads and servers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.io.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, MARK, WARN, SOFT = "#1d2129", "#1f6feb", "#b4540a", "#9aa4b2"

#: Of lines in one panel, in this order.
COLOURS = (MARK, WARN, INK, SOFT)


def save(figure: Figure, path: Path, formats: Sequence[str] = ("png",)) -> list[Path]:
    """Write a figure in each format, without time stamps, so that equal numbers give equal files.

    A PNG keeps 64 colours, which lines and text do not exceed by much, at a third of the size.
    """
    import matplotlib
    from matplotlib.text import Text
    from PIL import Image

    for text in figure.findobj(Text):
        text.set_parse_math(False)  # the dollars of a name are no formula
    written = []
    for form in formats:
        target = path.with_name(f"{path.name}.{form}")
        settings = matplotlib.rc_context({"svg.hashsalt": path.name, "text.parse_math": False})
        with replacing(target) as temporary, settings:
            figure.savefig(temporary, format=form, dpi=150, metadata={"Date": None} if form == "svg" else None)
            if form == "png":
                with Image.open(temporary) as drawn:
                    few = drawn.convert("RGB").quantize(64, dither=Image.Dither.NONE)
                few.save(temporary, format="png", optimize=True)
        written.append(target)
    return written


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def new_grid(count: int, width: float, height: float) -> tuple[Figure, list[Any]]:
    """A figure with `count` panels of this size, four to a row."""
    if not count:
        raise ValueError("there is nothing to plot; name at least one metric")
    across = min(count, 4)
    down = math.ceil(count / across)
    figure = new_figure(width * across, height * down + 0.4)
    panels = list(np.atleast_1d(figure.subplots(down, across)).ravel())
    for spare in panels[count:]:
        spare.set_axis_off()
    return figure, panels[:count]
