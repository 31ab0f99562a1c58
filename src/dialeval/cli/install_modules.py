"""`dialeval install-modules`: make `evaluate.load("dialeval/NAME")` work in any folder, without a network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli.options import say

EPILOG = """
[bold]Examples[/bold]

dialeval install-modules

HF_EVALUATE_OFFLINE=1 python -c 'import evaluate; print(evaluate.load("dialeval/density").description)'

dialeval install-modules --destination /shared/hf/modules   (HF_MODULES_CACHE of every user of a cluster)
"""


def install_modules(
    destination: Annotated[Path | None, typer.Option(help="Module cache; default: the one that evaluate uses.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Copy the evaluate modules to where [bold]evaluate.load("dialeval/density")[/bold] finds them without a network.

    evaluate asks the Hub first unless HF_EVALUATE_OFFLINE=1 is set; when the Hub does not answer, or has no such
    module, it takes these. It is safe to run this again, also in parallel.
    """
    from dialeval.hub.modules import install, module_folders, modules_cache

    cache = modules_cache() if destination is None else destination.expanduser()
    for folder in module_folders():
        installed = install(folder, cache)
        if not quiet:
            say(f'evaluate.load("dialeval/{folder.name}")  {installed}')
    if not quiet and not os.environ.get("HF_EVALUATE_OFFLINE"):
        say("set HF_EVALUATE_OFFLINE=1 and evaluate will not ask the Hub first", err=True)
