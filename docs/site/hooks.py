"""What the site has that the repository has elsewhere: a page per metric, the README as its home, and the tutorial."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
GITHUB = "https://github.com/dialeval/dialeval/blob/main"
METRICS = ("judge", "density", "deb", "quantidce", "cmn", "fbd", "prd")
_LINK = re.compile(r"(\]\()((?:\.\./)*)([\w./-]+)(#[\w-]+)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made of other files."""
    from mkdocs.structure.files import File

    made = {f"metrics/{name}.md": _metric_page(name) for name in METRICS}
    made["index.md"] = _outward((ROOT / "README.md").read_text("utf-8"), Path())
    made["tutorial.md"] = notebook_as_markdown(ROOT / "docs" / "tutorial.ipynb")
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Links that leave the folder lead to the repository; the reference has docstrings in place of its signatures."""
    if page.file.src_uri == "api.md":
        markdown = re.sub(r"###[^\n]*\n\n<!-- (::: [\w.]+) -->.*?(?=\n##|\Z)", r"\1\n", markdown, flags=re.DOTALL)
    return markdown if page.file.generated_by else _outward(markdown, Path("docs") / Path(page.file.src_uri).parent)


def _metric_page(name: str) -> str:
    card = (ROOT / "metrics" / name / "README.md").read_text("utf-8").split("---\n", 2)[2]
    module = {"quantidce": "QuantiDce"}.get(name, name.capitalize())
    return f"{_outward(card, Path('metrics') / name)}\n\n## In Python\n\n::: dialeval.papers.{name}.{module}\n"


def notebook_as_markdown(path: Path) -> str:
    """The cells of a notebook in turn: prose, code, and what the code printed."""
    parts = []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    where = f"{GITHUB}/docs/{path.name}"
    return "\n\n".join([*parts, f"This page is a [notebook]({where}) that the tests run."]) + "\n"


def _outward(markdown: str, folder: Path) -> str:
    """Relative links of a page of the repository, as the site needs them."""

    def turned(found: re.Match[str]) -> str:
        mark = found[4] or ""
        target = (ROOT / folder / (found[2] + found[3])).resolve()
        if not target.exists() or not target.is_relative_to(ROOT):
            return found[0]
        inner = target.relative_to(ROOT)
        if inner.parts[0] == "docs" and target.is_file():
            return f"{found[1]}{_from(folder, inner)}{mark})"
        return f"{found[1]}{GITHUB}/{inner.as_posix()}{mark})"

    return _LINK.sub(turned, markdown)


def _from(folder: Path, inner: Path) -> str:
    """A page of the site, seen from a page that was made of a file in `folder`."""
    up = "../" if folder.parts[:1] == ("metrics",) else ""
    return up + inner.relative_to("docs").as_posix()
