"""The thin modules for `evaluate`: where they lie, and how they get into evaluate's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path


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
