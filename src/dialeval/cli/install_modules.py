"""`dialeval install-modules`: make `evaluate.load("dialeval/NAME")` work in any folder, without a network."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli.parsing import flowing

_EXAMPLES = """
[bold]Examples[/bold]

dialeval install-modules

HF_EVALUATE_OFFLINE=1 python -c 'import evaluate; print(evaluate.load("dialeval/density").description)'

dialeval install-modules --destination /shared/hf/modules   (HF_MODULES_CACHE of every user of a cluster)
"""


def add_to(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("install-modules", epilog=flowing(_EXAMPLES))(install_modules)


def install_modules(
    destination: Annotated[
        Path | None, typer.Option(help="The module cache, if not the one that evaluate will use here.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing unless something fails.")] = False,
) -> None:
    """Put the evaluate modules where [bold]evaluate.load("dialeval/density")[/bold] finds them without a network.

    evaluate asks the Hub first unless HF_EVALUATE_OFFLINE=1 is set; when the Hub does not answer, or has no such
    module, it takes what was put here. Running this again, also from several processes, does no harm.
    """
    cache = modules_cache() if destination is None else destination.expanduser()
    for folder in module_folders():
        installed = install(folder, cache)
        if not quiet:
            typer.echo(f'evaluate.load("dialeval/{folder.name}")  {installed}')
    if not quiet and not os.environ.get("HF_EVALUATE_OFFLINE"):
        typer.echo("set HF_EVALUATE_OFFLINE=1 and evaluate will not ask the Hub first", err=True)


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
