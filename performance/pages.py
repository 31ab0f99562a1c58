"""Figures in Markdown pages: the marked blocks that a script replaces."""

from __future__ import annotations

from pathlib import Path

README = Path(__file__).with_name("README.md")


def replace_block(path: Path, name: str, text: str) -> None:
    """Put text between `<!-- name -->` and `<!-- end of name -->`; the rest of the page stays as people wrote it."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    page = path.read_text(encoding="utf-8")
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise ValueError(f"{path} must have the line {begin} once and {end} once after it; put them back")
    head, _, rest = page.partition(begin)
    path.write_text(f"{head}{begin}\n\n{text.strip()}\n\n{end}{rest.partition(end)[2]}", encoding="utf-8")
