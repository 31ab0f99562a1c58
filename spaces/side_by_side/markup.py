"""Small pieces of HTML. Whatever a user typed passes `text` on its way into a page."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Sequence

from limits import cleaned

_LONGEST = 160
_TAG = re.compile(r"<[^>]*>")


def text(words: object, longest: int = _LONGEST) -> str:
    """Escaped, cut for display, and kept from turning the direction of what stands around it."""
    plain = cleaned(str(words))[0]
    shown = plain if len(plain) <= longest else f"{plain[: longest - 1]}…"
    # A lone surrogate can be typed but not sent.
    return f"<bdi>{html.escape(shown.encode('utf-8', errors='replace').decode())}</bdi>"


def number(value: float | None) -> str:
    """Three decimals, or a dash where there is no value."""
    return "–" if value is None or not math.isfinite(value) else f"{value:.3f}".replace("-", "−")


def bar(value: float | None) -> str:
    """A number from 0 to 1 with a bar as long; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return number(value)
    return f'{number(value)}<meter min="0" max="1" value="{value:.3f}" aria-hidden="true"></meter>'


def share(value: float | None) -> str:
    """A percentage, or a dash; a little is not nothing."""
    if value is None or not math.isfinite(value):
        return "–"
    return "&lt;1%" if 0 < value < 0.005 else f"{value:.0%}"


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]], *, cards: bool = False) -> str:
    """A table; on a narrow screen, or with `cards`, each row stands as a card. The cells are HTML already."""
    labels = [html.escape(_TAG.sub("", cell.partition("<small>")[0])) for cell in header]
    top = "".join(f'<th scope="col">{cell}</th>' for cell in header)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>'
        + "".join(
            f'<td data-label="{label}"><div>{cell}</div></td>' for label, cell in zip(labels[1:], row[1:], strict=True)
        )
        + "</tr>"
        for row in rows
    )
    kind = "scroll cards" if cards else "scroll"
    return (
        f'<div class="{kind}" tabindex="0" role="region" aria-label="{html.escape(caption)}"><table>'
        f"<caption>{html.escape(caption)}</caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def listed(items: Iterable[str], name: str) -> str:
    """A list of sentences, HTML already; nothing for none."""
    lines = "".join(f"<li>{item}</li>" for item in items)
    return f'<ul class="{name}">{lines}</ul>' if lines else ""


def problem(error: object) -> str:
    """What went wrong, where the result would have been; screen readers say it at once."""
    return f'<div class="problem" role="alert">{text(error, 600)}</div>'


def note(words: str) -> str:
    """A quiet line."""
    return f'<p class="note">{html.escape(words)}</p>'


def to_view(selector: str) -> str:
    """JavaScript that moves the page to where an answer will stand, if that is out of sight."""
    return f"""() => {{ const top = document.querySelector("{selector}").getBoundingClientRect().top;
if (top < 0 || top > innerHeight - 160) window.scrollTo({{top: scrollY + top - 90, behavior: "smooth"}}) }}"""
