"""The output folder of a job: a part per piece, whole or not there."""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from dialeval.ray.pieces import file_system
from dialeval.ray.recipe import Packet, ScoringRecipe
from dialeval.ray.stages import Reducer, Scoring, ScoringActor
from dialeval.scoring.outputs import ROW_KEYS, column_kinds
from dialeval.scoring.sets import SetPlan, SetState
from dialeval.scoring.summary import Summary, Tally

RUN, SUMMARY, PLAN = "_run.json", "summary.json", "_plan.safetensors"
_TOTALS = b"dialeval"
#: What a job writes, and what it is called while it is being written.
_WRITTEN = re.compile(r"part-\d{15}\.(parquet|sets|rejects\.jsonl)|_run\.json|summary\.json|_plan\.safetensors")
_HALF = re.compile(rf"\.({_WRITTEN.pattern})\.\w{{8}}")


@dataclass(frozen=True)
class Folder:
    """A folder on a disk or in an object store."""

    url: str

    @classmethod
    def of(cls, url: str) -> Self:
        """The folder by its full address, so that workers elsewhere find it."""
        system, path = file_system(url)
        return cls(str(system.unstrip_protocol(path)).rstrip("/"))

    def refuse_inputs(self, paths: Iterable[str]) -> None:
        """Nothing that is read may lie where a job writes, and where it removes what an earlier one wrote."""
        for path in paths:
            system, name = file_system(path)
            # A link leads elsewhere under the same name; of object stores there are none.
            address = str(system.unstrip_protocol(os.path.realpath(name) if _is_local(system) else name))
            if address.startswith(f"{self._resolved()}/"):
                raise ValueError(f"{path} is read, but lies in the folder that is written; choose another folder")

    def begin(self, identity: Mapping[str, Any], *, resume: bool) -> None:
        """Make the folder, or go on in it if it holds an unfinished run of the same kind."""
        system, path = self._system()
        there = (
            {str(name).rpartition("/")[2] for name in system.ls(path, detail=False)} if system.exists(path) else set()
        )
        described = json.dumps(identity, ensure_ascii=False)
        if there and RUN not in there:
            raise FileExistsError(f"{self.url} holds something else; choose a folder of its own")
        if there and not resume:
            # Others may have put something beside our parts since.
            for name in filter(_WRITTEN.fullmatch, there):
                system.rm(f"{path}/{name}")
        elif SUMMARY in there:
            raise FileExistsError(f"{self.url} is finished; choose another folder, or begin again with --no-resume")
        elif there and self.read(RUN).decode() != described:
            raise ValueError(
                f"{self.url} is an unfinished run with other options or another input; "
                "give the same ones to go on with it, or --no-resume to begin again"
            )
        system.makedirs(path, exist_ok=True)
        self.write(RUN, described.encode())

    def clear(self) -> None:
        """Remove what workers that died were writing; nobody writes any more."""
        system, path = self._system()
        for place in system.ls(path, detail=False, refresh=True):
            if _HALF.fullmatch(str(place).rpartition("/")[2]):
                system.rm(str(place))

    def finished(self) -> set[str]:
        """The names of the pieces whose scores are there."""
        system, path = self._system()
        names = (str(name).rpartition("/")[2] for name in system.ls(path, detail=False, refresh=True))
        return {
            name.removesuffix(".parquet") for name in names if name.startswith("part-") and name.endswith(".parquet")
        }

    def totals(self, name: str) -> Summary:
        """What a finished piece adds up to."""
        import pyarrow.parquet as pq

        return _totals_of(json.loads(pq.read_schema(io.BytesIO(self.read(f"{name}.parquet"))).metadata[_TOTALS]))

    def has(self, name: str) -> bool:
        """Whether a file is there."""
        system, path = self._system()
        return bool(system.exists(f"{path}/{name}"))

    def state(self, names: Iterable[str]) -> SetState:
        """The sum of the states of all pieces, read one after the other."""
        merged = SetState()
        for name in names:
            merged.merge(SetState.of_bytes(self.read(f"{name}.sets"))[0])
        return merged

    def plan(self, make: Callable[[], SetPlan]) -> SetPlan:
        """The plan of the first attempt: counts over other clusters would not add up."""
        if not self.has(PLAN):
            plan = make()
            self.write(PLAN, plan.to_bytes())
            return plan
        return SetPlan.of_bytes(self.read(PLAN))

    def read(self, name: str) -> bytes:
        """A file's content."""
        system, path = self._system()
        content: bytes = system.cat_file(f"{path}/{name}")
        return content

    def write(self, name: str, content: bytes) -> None:
        """Write a file that is whole or not there; object stores do so by themselves."""
        system, path = self._system()
        if self.url.startswith("file://"):
            handle, hidden = tempfile.mkstemp(prefix=f".{name}.", dir=path)
            try:
                with os.fdopen(handle, "wb") as stream:
                    stream.write(content)
                    stream.flush()
                    os.fsync(stream.fileno())
                os.chmod(hidden, 0o644)
                os.replace(hidden, f"{path}/{name}")
            except BaseException:
                os.unlink(hidden)
                raise
        else:
            system.pipe_file(f"{path}/{name}", content)

    def _resolved(self) -> str:
        system, path = self._system()
        return str(system.unstrip_protocol(os.path.realpath(path) if _is_local(system) else path)).rstrip("/")

    def _system(self) -> tuple[Any, str]:
        return file_system(self.url)


def _is_local(system: Any) -> bool:
    return "file" in ([system.protocol] if isinstance(system.protocol, str) else system.protocol)


class PieceScorer(ScoringActor):
    """An actor that scores pieces and writes them."""

    def __init__(self, recipe: ScoringRecipe, plan: SetPlan, folder: Folder) -> None:
        self.recipe, self.folder = recipe, folder
        self.scoring = Scoring(recipe)
        self.reducer = Reducer(recipe, plan) if recipe.of_systems else None

    def work(self, packet: Packet) -> Summary:
        """Score one packet, unless an attempt that was cut off after its last write has done so."""
        name = packet.name
        if self.folder.has(f"{name}.parquet"):
            return self.folder.totals(name)
        totals, content = self._scored(packet)
        if self.reducer is not None:
            state, rows, empty = self.reducer.work(packet)
            if not self.recipe.of_rows:
                totals.n, totals.n_empty = rows, empty
            self.folder.write(f"{name}.sets", state.to_bytes())
        if packet.rejects:
            lines = "".join(json.dumps(row, default=repr) + "\n" for row in packet.rejects)
            self.folder.write(f"{name}.rejects.jsonl", lines.encode())
        self.folder.write(f"{name}.parquet", _with_totals(content, totals))
        return totals

    def _scored(self, packet: Packet) -> tuple[Summary, Any]:
        import pyarrow as pa

        totals = self.scoring.summary()
        names = self.scoring.task.columns
        kinds = column_kinds(names, ROW_KEYS, self.scoring.task.texts)
        columns: dict[str, list[Any]] = {key: [] for key in kinds}
        if names:
            for record in self.scoring.records(packet):
                totals.add(record)
                for key in ROW_KEYS:
                    columns[key] += record[key]
                for name in names:
                    columns[name] += record["values"][name]
        totals.n_rejected = len(packet.rejects)
        return totals, pa.table(columns, schema=pa.schema(kinds.items()))


def _totals_of(counts: Mapping[str, Any]) -> Summary:
    """A summary from its plain form."""
    return Summary(**{**counts, "tallies": {name: Tally(**tally) for name, tally in counts["tallies"].items()}})


def _with_totals(table: Any, totals: Summary) -> bytes:
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({_TOTALS: json.dumps(asdict(totals)).encode()}), stream)
    return stream.getvalue()
