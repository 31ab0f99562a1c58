"""HTML pages from jinja templates, which lie beside the code that fills them."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def render(template: Path, **values: Any) -> str:
    """A page. Every value is escaped, and a name that the template misses is an error, not a gap."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(template.parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template.name).render(**values)
