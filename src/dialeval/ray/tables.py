"""Any data set of Ray's: packets are made of its batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dialeval.ray.cluster import Workers
from dialeval.ray.recipe import Packet, ScoringRecipe, packed
from dialeval.ray.stages import PACKET, Reducer, Scoring, Surveyor, packing, plan_for, unsealed, values_of
from dialeval.scores import Scores
from dialeval.scoring.outputs import column_kinds
from dialeval.scoring.sets import SetState
from dialeval.scoring.survey import Survey

if TYPE_CHECKING:
    import pyarrow as pa
    from ray.data import Dataset

_WHERE = "of its batch"


def score_rows(dataset: Dataset, recipe: ScoringRecipe, workers: Workers, packet_rows: int) -> Dataset:
    """The data set with a column per metric and aspect."""
    packets = _packets(dataset, recipe, packet_rows, with_table=True)
    return packets.map_batches(RowScorer, fn_constructor_args=(recipe,), **workers.pool())


def reduce_rows(dataset: Dataset, recipe: ScoringRecipe, workers: Workers, packet_rows: int) -> Mapping[str, Scores]:
    """The values of systems: one pass that looks, one that encodes and reduces."""
    packets = _packets(dataset, recipe, packet_rows, with_table=False)
    survey = Survey()
    for row in packets.map_batches(Surveyor, fn_constructor_args=(recipe,), **workers.pool()).iter_rows():
        survey.merge(unsealed(row))
    if not survey.systems:
        raise ValueError("the data set holds no rows; there is nothing to score")
    survey.systems = dict(sorted(survey.systems.items(), key=lambda known: known[0] or ""))
    plan = workers.call(plan_for, recipe, survey)
    state, empty = SetState(), 0
    for row in packets.map_batches(Reducer, fn_constructor_args=(recipe, plan), **workers.pool()).iter_rows():
        part, _, blank = unsealed(row)
        state.merge(part)
        empty += blank
    return workers.call(values_of, recipe, plan, state, empty)


class RowScorer:
    """An actor that gives a packet its columns."""

    def __init__(self, recipe: ScoringRecipe) -> None:
        self.scoring = Scoring(recipe)

    def __call__(self, batch: dict[str, Any]) -> pa.Table:
        """The table of the packet with a column per metric."""
        import pyarrow as pa

        packet: Packet = unsealed({PACKET: batch[PACKET][0]})
        table = packet.table
        kinds = column_kinds(self.scoring.task.columns, (), self.scoring.task.texts)
        values: dict[str, list[Any]] = {name: [] for name in kinds}
        for record in self.scoring.records(packet):
            for name, column in record["values"].items():
                values[name] += column
        for name, column in values.items():
            table = _with_column(table, name, pa.array(column, kinds[name]))
        blank = [exchange.is_empty for exchange in packet.chunk.exchanges]
        return _with_column(table, "empty", pa.array(blank, pa.bool_()))


def _packets(dataset: Dataset, recipe: ScoringRecipe, packet_rows: int, *, with_table: bool) -> Dataset:
    def make(table: pa.Table) -> Packet:
        packet = packed(recipe, table.to_pylist(), first=0, where=_WHERE)
        packet.table = table if with_table else None
        return packet

    def pack(table: pa.Table) -> dict[str, Any]:
        return packing(make, table)

    return dataset.map_batches(pack, batch_size=packet_rows, batch_format="pyarrow")


def _with_column(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, column)
    return table.append_column(name, column)
