"""`dialeval benchmarks`: the human-judgement data that metrics are compared with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from dialeval.cli.options import say

if TYPE_CHECKING:
    from dialeval.benchmarks import BenchmarkInfo


app = typer.Typer(
    help="Human-judgement benchmarks: list, describe and fetch them.", no_args_is_help=True, rich_markup_mode="rich"
)


@app.command("list")
def list_benchmarks() -> None:
    """Show every benchmark: what was judged, how many rows, and whether it was fetched.

    `--benchmarks all` leaves out those that repeat rows of another. The first word of names (fbd)
    stands for all of them.
    """
    from dialeval import benchmarks
    from dialeval.benchmarks.fetch import is_cached

    rows = [("name", "level", "rows", "main aspect", "systems", "fetched", "protocols", "repeats")]
    for name in benchmarks.available():
        info = benchmarks.info(name)
        facts = (info.level, str(info.rows), info.main_aspect, str(len(info.systems) or "-"))
        fetched = "yes" if is_cached(info) else "no"
        rows.append((name, *facts, fetched, ", ".join(benchmarks.protocols(name)), info.repeats or "-"))
    # Plain columns, never cut: names are there to be copied into the next command.
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    say(
        "`all` leaves out attacks, positives only, and what repeats rows of another; name those, or a first word (fbd)."
    )


@app.command()
def info(
    name: Annotated[str, typer.Argument(help="A name of `list`, or a .jsonl file of your own.")],
    protocol: Annotated[str | None, typer.Option(help="Protocol, where there are several; `info` lists them.")] = None,
) -> None:
    """Describe a benchmark: source, licence, aspects, systems, exclusions, oddities, contamination.

    [bold]Examples[/bold]

      dialeval benchmarks info convai2_grade

      dialeval benchmarks info fbd_convai2 --protocol as_released

      dialeval benchmarks info my_ratings.jsonl
    """
    from dialeval import benchmarks

    known = name in benchmarks.available() or not name.endswith(benchmarks.SUFFIXES)
    declared = benchmarks.info(name, protocol) if known else benchmarks.load(name, protocol=protocol).info
    say(*_description(declared, benchmarks.protocols(name) if known else ()))


def _description(info: BenchmarkInfo, protocols: tuple[str, ...]) -> Iterator[str]:
    """Everything that the declaration says, one heading per line."""
    yield f"{info.name}: {info.title}"
    yield f"  {info.rows} rows, kind {info.kind}, level {info.level}, revision {info.revision}"
    yield f"  protocol {info.protocol}" + (f" of {', '.join(protocols)}" if len(protocols) > 1 else "")
    yield f"  licence: {info.licence}"
    yield f"  cite: {info.citation}"
    for source in info.sources:
        yield f"  source: {source.repository}" + (f" at {source.commit}" if source.commit else "")
        for file in source.files:
            yield f"    {file.path} ({file.bytes} bytes, sha256 {file.sha256[:12]}…)"
    for aspect, scale in info.aspects.items():
        main = " (main)" if aspect == info.main_aspect else ""
        yield f"  aspect: {aspect} {scale.low:g} to {scale.high:g}{main}"
    for system in info.systems:
        mark = " (human)" if system in info.human_systems else " (planted)" if system in info.negative_systems else ""
        yield f"  system: {system}{mark}"
    for name, systems in info.exclusions.items():
        default = " (default)" if name == info.default_exclusion else ""
        yield f"  exclusion {name}{default}: {', '.join(systems) or 'nothing'}"
    for name, subset in info.subsets.items():
        yield f"  subset {name}: {subset.why}"
    if not info.tells_apart:
        yield "  every row has the same label; not part of `all`"
    if info.repeats:
        yield f"  repeats rows of: {info.repeats}; not part of `all`, so name it where it is wanted"
    if info.contaminates:
        yield f"  contaminated for checkpoints of: {', '.join(info.contaminates)}"
    for oddity in info.oddities:
        yield f"  note: {oddity}"


@app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(help="Names of `list`, or `all`.")],
    mirror: Annotated[
        str | None,
        typer.Option(envvar="DIALEVAL_MIRROR", help="Mirror of GitHub: folder or address, as OWNER/REPO/COMMIT/PATH."),
    ] = None,
) -> None:
    """Fetch and verify the files of benchmarks, so that later runs work offline.

    A file that was interrupted starts again. Files are cached in DIALEVAL_CACHE
    (default: dialeval in your cache folder).

    [bold]Examples[/bold]

      dialeval benchmarks fetch convai2_grade persona_usr

      dialeval benchmarks fetch all --mirror /media/stick/benchmarks
    """
    from dialeval import benchmarks

    # Every name is looked up before the first byte is asked for.
    wanted = [
        benchmarks.info(name, protocol)
        for name in (benchmarks.available() if "all" in names else names)
        for protocol in benchmarks.protocols(name)
    ]
    failed = False
    for declared in wanted:
        try:
            files = benchmarks.fetch_files(declared, mirror=mirror, progress=True)
        except benchmarks.Unreachable:
            # Without a connection the others would fail in the same way.
            raise
        except benchmarks.FetchError as error:
            say(f"{declared.name}: {error}", err=True)
            # A benchmark without a file on GitHub cannot be part of `all` without a mirror.
            failed = failed or declared.companion is None or "all" not in names
        else:
            say(f"{declared.name} ({declared.protocol}): {len(files)} files")
    if failed:
        raise typer.Exit(1)
