"""`dialeval publish`: checkpoints, modules and Spaces to the Hugging Face Hub."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli import FAILED
from dialeval.cli.options import say

HELP = """Publish to the Hub: checkpoints with their cards and results, and the metrics' modules as Spaces.

[bold]What[/bold]: models, modules, spaces, all; an embedded checkpoint or a module by its name; or the folder of a
checkpoint or a Space. Each goes to its repository in one commit; files that are already there are not uploaded again.
Only repositories of dialeval are written to.

[bold]Token[/bold]: that of `hf auth login`, or HF_TOKEN, with write access. The token is never printed.

[bold]Exit codes[/bold]: 0 done; 1 the Hub or the network failed, run it again; 2 refused, the sentence says why.

[bold]Examples[/bold]

$ dialeval publish all --dry-run

$ dialeval publish models modules --org my-lab --private --tag v0.3.0

$ dialeval publish runs/mine/checkpoint --org my-lab --merge"""


def publish(
    what: Annotated[list[str], typer.Argument(metavar="WHAT...", help="models, modules, spaces, all, names, folders.")],
    org: Annotated[str, typer.Option(help="User or organisation on the Hub.")] = "dialeval",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be uploaded.")] = False,
    merge: Annotated[
        bool, typer.Option("--merge", help="Each checkpoint also as NAME-merged, one full model.")
    ] = False,
    private: Annotated[bool, typer.Option("--private", help="Make new repositories private.")] = False,
    tag: Annotated[str | None, typer.Option(help="Tag the commits.")] = None,
    message: Annotated[str | None, typer.Option("--message", "-m", help="Commit message.")] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            help="Output folder of `dialeval agreement`, for the cards; default: results/ of a checkout.", exists=True
        ),
    ] = None,
) -> None:
    """Copy, list, and send."""
    from rich.filesize import decimal

    from dialeval.hub.publish import Unsent, default_results, find_folders, make_uploads, send

    results = results or default_results()
    with tempfile.TemporaryDirectory() as workspace:
        uploads = list(make_uploads(find_folders(what), org, Path(workspace), results=results, merge=merge))
        for upload in uploads:
            say(f"{upload.kind} {upload.repo_id}")
            for path in upload.files:
                say(f"  {path.relative_to(upload.folder).as_posix()}  {decimal(path.stat().st_size)}")
        if dry_run:
            say("dry run: nothing was uploaded")
            return
        for upload in uploads:
            try:
                say(f"published {send(upload, private=private, tag=tag, message=message)}")
            except Unsent as error:
                say(f"error: {error}", err=True)
                raise typer.Exit(FAILED) from None
