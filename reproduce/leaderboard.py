"""`python -m reproduce leaderboard`: the pages of earlier runs, made anew from their results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from dialeval.agreement.results import (
    Filtering,
    Half,
    Overall,
    Report,
    Result,
    Skipped,
    as_record,
    read_records,
    read_results,
)
from dialeval.agreement.sections import sections
from dialeval.agreement.settings import Settings
from dialeval.io.files import parse_json


def add_to(app: typer.Typer) -> None:
    """Add the command to the app."""

    @app.command("leaderboard", no_args_is_help=True)
    def leaderboard(
        folders: Annotated[list[Path], typer.Argument(help="Folders of `dialeval agreement` runs.")],
    ) -> None:
        """Write leaderboards again, marked by what the embedded checkpoints now say that they were trained on."""
        from dialeval.checkpoints.find import WEIGHTS
        from dialeval.reports.output import write_pages
        from dialeval.reports.plots.panels import draw_all

        for folder in folders:
            report = read_report(folder)
            report.results = with_present_marks(report.results, WEIGHTS)
            report.aspects = with_present_marks(report.aspects, WEIGHTS)
            written = [report.write_table(folder), *write_pages(report, folder)]
            if (folder / "plots").is_dir():
                written += draw_all(report, folder / "plots")
            for path in written:
                typer.echo(path)


def read_report(folder: Path) -> Report:
    """The results, the settings and what was left out; not the single scores."""
    path = folder / "run.json"
    try:
        about = parse_json(path.read_text("utf-8"))
        kept: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in about["settings"].items()
        }
        made = Settings(**kept)
        skipped = [as_record(one, Skipped) for one in about["skipped"]]
        command = str(about["command"])
    except OSError as error:
        message = f"{path} cannot be read ({error.strerror}); give the folder of a `dialeval agreement` run"
        raise ValueError(message) from None
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not what `dialeval agreement` writes ({error}); make it again") from None
    aspects, halves, overall, filters = (
        folder / f"{name}.jsonl" for name in ("aspects", "halves", "overall", "filters")
    )
    return Report(
        made,
        results=read_results(folder),
        aspects=read_records(aspects, Result) if aspects.is_file() else [],
        skipped=skipped,
        command=command,
        halves=read_records(halves, Half) if halves.is_file() else [],
        overall=read_records(overall, Overall) if overall.is_file() else [],
        filters=read_records(filters, Filtering) if filters.is_file() else [],
    )


def with_present_marks(results: Iterable[Result], weights: Path) -> list[Result]:
    """The results marked by what the checkpoints below `weights` now say that they were trained on.

    A checkpoint is known by the digest of its weights; results of others keep their marks. What may not be called
    best under the present rules no longer is; where that leaves nobody, the highest that may takes the place.
    """
    from dialeval.checkpoints.config import CheckpointConfig
    from dialeval.checkpoints.find import weights_digest
    from dialeval.core.scores import Signature

    trained_on = {}
    for path in weights.glob("*/config.json"):
        config = CheckpointConfig.read(path.parent)
        name = f"{config.name or path.parent.name}@{weights_digest(path.parent, config.encoder.layers)[:12]}"
        trained_on[name] = frozenset(config.contaminated_by)
    marked = []
    for row in results:
        known = trained_on.get(Signature.parse(row.metric_signature).get("checkpoint", ""), frozenset())
        row = replace(row, contaminated=row.contaminated or row.benchmark in known)
        if row.in_best_group is not None:
            row = replace(row, in_best_group=row.in_best_group and row.can_be_best)
        marked.append(row)
    return _with_somebody_best(marked)


def _with_somebody_best(results: list[Result]) -> list[Result]:
    best = set()
    for section in sections(Report(Settings(), results=results)):
        rows = [one.results[section.ranked_by] for one in section.entries if section.ranked_by in one.results]
        rivals = [row for row in rows if row.can_be_best and row.in_best_group is not None]
        if rivals and not any(row.in_best_group for row in rows):
            best.add(max(rivals, key=lambda row: row.value))
    return [replace(row, in_best_group=True) if row in best else row for row in results]
