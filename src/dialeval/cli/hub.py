"""`dialeval publish` and `export`, `install-modules` and `copy-training`: what goes out, and what is installed."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli import FAILED
from dialeval.cli.options import say


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
    """Publish to the Hub: checkpoints with their cards and results, and the metrics' modules as Spaces.

    [bold]What[/bold]: models, modules, spaces, all; an embedded checkpoint or a module by its name; or the folder of a
    checkpoint or a Space. Each goes to its repository in one commit; files that are already there are not uploaded
    again. Only repositories of dialeval are written to.

    [bold]Token[/bold]: that of `hf auth login`, or HF_TOKEN, with write access. The token is never printed.

    [bold]Exit codes[/bold]: 0 done; 1 the Hub or the network failed, run it again; 2 refused, the sentence says why.

    [bold]Examples[/bold]

    $ dialeval publish all --dry-run

    $ dialeval publish models modules --org my-lab --private --tag v0.3.0

    $ dialeval publish runs/mine/checkpoint --org my-lab --merge
    """
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


def export(
    what: Annotated[str, typer.Argument(metavar="judge", help="The metric: judge.")],
    to: Annotated[Path, typer.Option("--to", help="A new folder.", file_okay=False)],
    checkpoint: Annotated[str | None, typer.Option(help="Name, folder or Hub id of a judge.")] = None,
) -> None:
    """Write a judge's encoder and its head for relevance as a plain cross-encoder.

    The folder loads with sentence_transformers.CrossEncoder, transformers' text-classification pipeline, and servers
    that take sequence classifiers, without dialeval. Its README says what it lacks beside the judge.

    [bold]Examples[/bold]

    $ dialeval export judge --to relevance

    $ dialeval export judge --checkpoint judge-open --to relevance-open
    """
    if what != "judge":
        raise ValueError(f"{what} cannot be exported; judge can")
    from dialeval.io.places import check_new_folder

    check_new_folder(to)
    from dialeval.hub.export import export_judge

    say(f"wrote {export_judge(checkpoint, to)}")


def install_modules(
    destination: Annotated[Path | None, typer.Option(help="Module cache; default: the one that evaluate uses.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Copy the evaluate modules to where [bold]evaluate.load("dialeval/density")[/bold] finds them without a network.

    evaluate asks the Hub first unless HF_EVALUATE_OFFLINE=1 is set; when the Hub does not answer, or has no such
    module, it takes these. It is safe to run this again, also in parallel.

    [bold]Examples[/bold]

    $ dialeval install-modules

    $ HF_EVALUATE_OFFLINE=1 python -c 'import evaluate; print(evaluate.load("dialeval/density").description)'

    $ dialeval install-modules --destination /shared/hf/modules   (HF_MODULES_CACHE of every user of a cluster)
    """
    from dialeval.hub.modules import install, module_folders, modules_cache

    cache = modules_cache() if destination is None else destination.expanduser()
    for folder in module_folders():
        installed = install(folder, cache)
        if not quiet:
            say(f'evaluate.load("dialeval/{folder.name}")  {installed}')
    if not quiet and not os.environ.get("HF_EVALUATE_OFFLINE"):
        say("set HF_EVALUATE_OFFLINE=1 and evaluate will not ask the Hub first", err=True)


#: Beside the package's own modules in a wheel; beside `src` in a checkout.
_PLACES = (Path(__file__).parents[1] / "training_files", Path(__file__).parents[3] / "training")


def copy_training(folder: Annotated[Path, typer.Argument(help="New folder.")] = Path("training")) -> None:
    """Copy the training scripts and recipes into a folder, to train on dialogues of your own.

    They are part of the package; running them needs the extra [bold]training[/bold].

    [bold]Examples[/bold]

    $ dialeval copy-training

    $ python training/density.py --recipe training/recipes/own-density.yaml --corpora CORPORA --out runs/mine
    """
    source = next((place for place in _PLACES if (place / "recipes").is_dir()), None)
    if source is None:
        raise FileNotFoundError("this installation holds no training scripts; install dialeval again")
    if folder.exists():
        raise ValueError(f"{folder} already exists; choose a new folder")
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("__pycache__"))
    recipes = len(list((folder / "recipes").glob("*.yaml")))
    say(f"{folder}: {len(list(folder.glob('*.py')))} scripts, {recipes} recipes")
