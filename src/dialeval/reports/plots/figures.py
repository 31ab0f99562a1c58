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
from dialeval.io.harmless import for_terminal

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
    from PIL import Image

    _make_harmless(figure)
    written = []
    for form in formats:
        target = path.with_name(f"{path.name}.{form}")
        settings = matplotlib.rc_context({"svg.hashsalt": path.name, "text.parse_math": False})
        with replacing(target) as temporary, settings:
            figure.savefig(temporary, format=form, dpi=150, metadata={"Date": None} if form.lower() == "svg" else None)
            if form.lower() == "png":
                with Image.open(temporary) as drawn:
                    few = drawn.convert("RGB").quantize(64, dither=Image.Dither.NONE)
                few.save(temporary, format="png", optimize=True)
        written.append(target)
    return written


def _make_harmless(figure: Figure) -> None:
    """Names of systems and metrics as they stand: their dollars are no formula, and SVG has no control characters."""
    from matplotlib.category import StrCategoryFormatter
    from matplotlib.text import Text
    from matplotlib.ticker import FixedFormatter, FuncFormatter

    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            names = axis.get_major_formatter()
            if isinstance(names, FixedFormatter | FuncFormatter | StrCategoryFormatter):
                axis.set_major_formatter(
                    FuncFormatter(lambda value, place, names=names: for_terminal(names(value, place)))
                )
    for text in figure.findobj(Text):
        text.set_parse_math(False)
        text.set_text(for_terminal(text.get_text()))


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
