"""The thin modules for `evaluate`: where they lie, and how they get into evaluate's cache."""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from dialeval.checkpoints.find import CheckpointError
from dialeval.hub.evaluate_module import loaded
from dialeval.registry import metric_class
from dialeval.registry.interface import MetricInfo


def modules_cache() -> Path:
    """Where evaluate keeps modules; the same rule as its own, which is costly to import."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    home = Path(os.environ.get("HF_HOME", f"{cache}/huggingface")).expanduser()
    return Path(os.environ.get("HF_MODULES_CACHE", home / "modules"))


def module_folders() -> list[Path]:
    """The modules that travel with the package, or lie in the source checkout around it."""
    package = Path(__file__).parents[1]
    for root in (package / "modules", package.parents[1] / "metrics"):
        folders = sorted(script.parent for script in root.glob("*/*.py") if script.stem == script.parent.name)
        if folders:
            return folders
    raise FileNotFoundError("this installation holds no evaluate modules; install dialeval again")


def install(folder: Path, cache: Path) -> Path:
    """Copy one module's script; evaluate takes the newest of several versions."""
    script = folder / f"{folder.name}.py"
    digest = hashlib.sha256(script.read_bytes()).hexdigest()
    parent = cache / "evaluate_modules" / "metrics" / f"dialeval--{folder.name}"
    parent.mkdir(parents=True, exist_ok=True)
    final = parent / digest
    # evaluate looks at folders with 64 characters in their names; ours gets such a name when it is complete.
    building = Path(tempfile.mkdtemp(prefix=".building-", dir=parent))
    try:
        building.chmod(0o755)
        shutil.copyfile(script, building / script.name)
        try:
            building.rename(final)
        except OSError:
            if not final.is_dir():
                raise
            # Another process, or an earlier run, was here. Replacing the script makes it the newest again.
            os.replace(building / script.name, final / script.name)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return final / script.name


#: A page is for trying; files are for `dialeval score`.
MAX_CHARACTERS, MAX_ROWS = 20_000, 500

ROWS = [
    ["Did you find your keys? | Not yet.", "Maybe they are in the car.", "Have you looked in the car?"],
    ["Shall we cook tonight? | I am rather tired.", "I like pancakes with syrup.", "I can cook while you rest."],
    ["Do you have any pets?", "Two cats, and they hate each other.", "Yes, an old dog called Max."],
    ["My train is late again.", "I do not know.", "Oh no, how long do you have to wait?"],
]


def direction(info: MetricInfo) -> str:
    """In words, which way is better and how far it goes."""
    low, high = info.range
    bounds = f"{low:g} to {high:g}" if math.isfinite(low) or math.isfinite(high) else "without bounds"
    return f"{'Higher' if info.higher_is_better else 'Lower'} is better ({bounds})."


def build_page(app: str) -> Any:
    """The page as a gradio Interface; `app` is the path of the module's app.py, beside its script and card."""
    import gradio as gr

    (name,) = (path.stem for path in Path(app).parent.glob("*.py") if path.name != "app.py")
    info = metric_class(name)[0].info

    def judge(table: list[list[Any]]) -> tuple[float, list[list[Any]], str]:
        cells = [[str(cell or "").strip() for cell in [*row, "", "", ""][:3]] for row in table]
        rows = [row for row in cells if any(row)]
        if len(rows) > MAX_ROWS or sum(len(cell) for row in rows for cell in row) > MAX_CHARACTERS:
            raise gr.Error(f"more than {MAX_ROWS} rows or {MAX_CHARACTERS:,} characters; `dialeval score` reads files")
        contexts = [[turn.strip() for turn in context.split("|") if turn.strip()] for context, _, _ in rows]
        references = [[reference] if reference else [] for *_, reference in rows]
        try:
            scores = loaded(name).score([reply for _, reply, _ in rows], contexts, references)
        except (ValueError, CheckpointError) as error:
            raise gr.Error(str(error), print_exception=False) from None
        return scores.aggregate, [[value] for value in scores.values.tolist()], str(scores.signature)

    card = Path(app).with_name("README.md").read_text("utf-8").split("---\n", 2)[2]
    table = gr.Dataframe(ROWS, headers=["context, turns separated by |", "reply", "reference"], type="array", wrap=True)
    outputs = [gr.Number(label=info.title), gr.Dataframe(headers=["value"]), gr.Textbox(label="Signature")]
    texts: dict[str, Any] = {"title": info.title, "description": f"{info.summary} {direction(info)}", "article": card}
    return gr.Interface(judge, table, outputs, **texts, flagging_mode="never", analytics_enabled=False)
