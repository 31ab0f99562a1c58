"""`dialeval publish`: checkpoints, modules and Spaces to the Hugging Face Hub."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli.errors import FAILED
from dialeval.cli.parsing import flowing

_HELP = """Publish to the Hub: checkpoints with their cards and results, and the metrics' modules as Spaces.

[bold]What[/bold]: models, modules, spaces, all; an embedded checkpoint or a module by its name; or the folder of a
checkpoint or a Space. Everything is compared with the Hub before anything is sent, and only what differs is sent, in
one commit per repository: running the same command again sends nothing, and after a failure it goes on. A new
repository stays private until it is complete. Repositories that are not dialeval's are never written to.

[bold]Token[/bold]: the one of `hf auth login`, or HF_TOKEN. It needs write access; it is never printed.

[bold]Exit codes[/bold]: 0 done; 1 the Hub or the network failed, run it again; 2 refused, the sentence says why.

[bold]Examples[/bold]

$ dialeval publish all --dry-run

$ dialeval publish models modules --org my-lab --private --tag v0.1.0

$ dialeval publish runs/mine/checkpoint --org my-lab --merge"""


def add_to(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("publish", help=flowing(_HELP), no_args_is_help=True)(publish)


def publish(
    what: Annotated[list[str], typer.Argument(metavar="WHAT...", help="models, modules, spaces, all, names, folders.")],
    org: Annotated[str, typer.Option(help="Your name on the Hub, or an organisation's.")] = "dialeval",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be sent.")] = False,
    merge: Annotated[
        bool, typer.Option("--merge", help="Each checkpoint also as NAME-merged, one full model without an adapter.")
    ] = False,
    private: Annotated[
        bool | None,
        typer.Option("--private/--public", help="By default new ones are public, others stay as they are."),
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Give what is published a tag that readers can pin.")] = None,
    message: Annotated[str | None, typer.Option("--message", "-m", help="Of the commits.")] = None,
    results: Annotated[
        Path | None, typer.Option(help="Folder of `dialeval agreement`; by default results/ of the checkout.")
    ] = None,
) -> None:
    """Plan, show the plan, and carry it out."""
    from dialeval.publishing.hub import Hub, HubTrouble
    from dialeval.publishing.plan import PublishOptions, described, make_plans
    from dialeval.publishing.push import push
    from dialeval.publishing.targets import default_results, find_targets, make_uploads

    if results is not None and not results.is_dir():
        raise ValueError(f"there is no folder {results}; make it with `dialeval agreement --out {results}`")
    if message is not None and not message.strip():
        raise ValueError("the commit message is empty; leave --message out or write one")
    options = PublishOptions(org, private, tag, message)
    targets = find_targets(what)
    try:
        hub = Hub()
        if hub.token is not None or not dry_run:
            hub.check_writer(org)
        with tempfile.TemporaryDirectory() as workspace:
            uploads = make_uploads(
                targets, org, results=results or default_results(), merge=merge, workspace=Path(workspace)
            )
            plans = make_plans(uploads, hub, options)
            for line in described(plans, hub.endpoint, options):
                typer.echo(line)
            if dry_run:
                typer.echo("dry run: nothing was sent")
                return
            for plan in plans:
                if not plan.is_done:
                    typer.echo(f"published {plan.upload.repo_id} at {push(plan, hub, options)[:8]}")
    except HubTrouble as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(FAILED) from None
