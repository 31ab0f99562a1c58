"""Parquet files, on disks or in object stores: pieces of them are scored, and what is finished is never done again.

A piece is some rows of one row group. Its scores are one file of the output folder, named after where
the piece begins, that appears whole or not at all: a worker that dies leaves nothing behind, and a
second attempt writes the same name. What the piece adds up to stands in the file's metadata.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dialeval.exchange import EmptyPolicy
from dialeval.metric import Level, Scale
from dialeval.ray.cluster import Workers, connect
from dialeval.ray.parts import SUMMARY, Folder, PieceScorer
from dialeval.ray.pieces import PieceOfFile, open_file, pieces_of
from dialeval.ray.recipe import Packet, ScoringRecipe, packed, tokenizers
from dialeval.ray.stages import Surveyor, packing, plan_for, unsealed, values_of
from dialeval.scoring.sets import SetPlan
from dialeval.scoring.summary import Summary
from dialeval.scoring.survey import Survey

#: Rows of a piece: large enough that files are few, small enough that little is lost with a worker.
PIECE_ROWS = 16_384

Progress = Callable[[int], None]


@dataclass(frozen=True)
class FileJob:
    """What is scored, and by whom."""

    recipe: ScoringRecipe
    pieces: Sequence[PieceOfFile]
    workers: Workers


def score_files(
    input: str | Sequence[str],
    output: str,
    metrics: str | Sequence[str],
    *,
    columns: Mapping[str, str] | None = None,
    checkpoints: Mapping[str, str] | None = None,
    level: Level = Level.TURN,
    scale: Scale = "native",
    empty: EmptyPolicy = "error",
    skip_bad: bool = False,
    explain: bool = False,
    resume: bool = True,
    actors: int | None = None,
    cpus_per_actor: float | None = None,
    gpus_per_actor: float | None = None,
    piece_rows: int = PIECE_ROWS,
    progress: Progress = lambda rows: None,
    **options: Any,
) -> Summary:
    """Score Parquet files into a folder of Parquet files, and return what they add up to.

    Args:
        input: a path, a pattern with `*`, a folder, or several; local or any that pyarrow or fsspec opens.
        output: a folder of its own; `summary.json` in it says that everything is done.
        skip_bad: set bad rows aside in `*.rejects.jsonl` instead of stopping.
        explain: add the ends of an interval and a reason to each value, from metrics that give them.
        resume: keep finished pieces of an interrupted run, or begin again.
        piece_rows: rows of an output file, and what a dying worker loses at most.
        progress: called with the number of rows done so far.
    """
    connect()
    settings = {"level": level, "scale": scale, "empty": empty, "skip_bad": skip_bad, "explain": explain}
    recipe = ScoringRecipe.of(
        [metrics] if isinstance(metrics, str) else metrics,
        options=options,
        checkpoints=dict(checkpoints or {}),
        columns=dict(columns or {}),
        **settings,
    )
    tokenizers(recipe)  # says here, and not among the workers, what is wrong with a checkpoint
    found = pieces_of([input] if isinstance(input, str) else input, recipe, piece_rows)
    job = FileJob(recipe, found, Workers.choose(actors, cpus_per_actor, gpus_per_actor))
    folder = Folder.of(output)
    folder.refuse_inputs({piece.path for piece in found})
    folder.begin(_identity(recipe, found), resume=resume)
    plan = folder.plan(lambda: _look_through(job)) if recipe.of_systems else SetPlan(())
    return _score(job, folder, plan, progress)


def _score(job: FileJob, folder: Folder, plan: SetPlan, progress: Progress) -> Summary:
    recipe, finished = job.recipe, folder.finished()
    summary = Summary.begin(str(recipe.level), recipe.infos)
    for piece in job.pieces:
        if piece.name in finished:
            done = folder.totals(piece.name)
            done.n_resumed = done.n
            summary.merge(done)
    progress(summary.n)
    missing = [piece for piece in job.pieces if piece.name not in finished]
    if missing:
        packets = _read(missing, recipe)
        given = (recipe, plan, folder)
        for row in packets.map_batches(PieceScorer, fn_constructor_args=given, **job.workers.pool()).iter_rows():
            summary.merge(unsealed(row))
            progress(summary.n)
    if not summary.n:
        raise ValueError(f"none of the {summary.n_rejected} rows can be scored")
    if recipe.of_systems:
        state = folder.state([piece.name for piece in job.pieces])
        for name, scores in job.workers.call(values_of, recipe, plan, state, summary.n_empty).items():
            summary.add_systems(name, scores)
    folder.clear()
    folder.write(SUMMARY, json.dumps(summary.to_dict(), ensure_ascii=False, indent=2).encode() + b"\n")
    return summary


def _look_through(job: FileJob) -> SetPlan:
    """Two metrics compare sets: find what all actors must agree on, from all rows."""
    survey, packets = Survey(), _read(job.pieces, job.recipe)
    stage = packets.map_batches(Surveyor, fn_constructor_args=(job.recipe,), **job.workers.pool())
    for row in stage.iter_rows():
        survey.merge(unsealed(row))
    survey.systems = dict(sorted(survey.systems.items(), key=lambda known: known[0] or ""))
    return job.workers.call(plan_for, job.recipe, survey)


def _read(pieces: Sequence[PieceOfFile], recipe: ScoringRecipe) -> Any:
    """A lazy data set of packets, one to a block, so that every actor gets some and a lost one costs little."""
    import ray

    def read(batch: dict[str, Any]) -> dict[str, Any]:
        return packing(lambda piece: _packet(recipe, PieceOfFile(**json.loads(piece))), batch["piece"][0])

    rows = [{"piece": json.dumps(asdict(piece))} for piece in pieces]
    listed = ray.data.from_items(rows, override_num_blocks=len(rows))
    return listed.map_batches(read, batch_size=1, batch_format="numpy", num_cpus=0.5)


def _packet(recipe: ScoringRecipe, piece: PieceOfFile) -> Packet:
    with open_file(piece.path) as file:
        table = file.read_row_group(piece.group, columns=list(piece.columns) or None)
    part = table.slice(piece.start, piece.rows)
    packet = packed(recipe, part.to_pylist(), first=piece.first, where=piece.path)
    packet.name = piece.name
    return packet


def _identity(recipe: ScoringRecipe, pieces: Sequence[PieceOfFile]) -> dict[str, Any]:
    """What must be equal for two runs to share finished pieces."""
    from dialeval.version import __version__

    kept = {key: str(value) for key, value in asdict(recipe).items() if key != "entries"}
    return {
        "dialeval": __version__,
        "recipe": kept,
        "pieces": [[piece.path, piece.size, piece.first] for piece in pieces],
    }
