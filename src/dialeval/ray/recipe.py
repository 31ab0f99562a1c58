"""What every worker of a Ray job must know, and the packets of rows that travel between its stages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dialeval.engine.formatting import PairTokenizer, TokenPair
from dialeval.exchange import BadRow, EmptyPolicy
from dialeval.metric import Level, Metric, MetricInfo, Scale
from dialeval.readers import Source
from dialeval.readers.rows import Columns, RawRow, to_dialogue, to_exchange
from dialeval.registry import REGISTRY, RegisteredMetric, load_metrics, metric_class
from dialeval.scoring.task import Chunk, Task, check_explained, without_references


@dataclass(frozen=True)
class ScoringRecipe:
    """Metrics by name with the options to load them by, and how rows are read."""

    names: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    checkpoints: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    level: Level = Level.TURN
    scale: Scale = "native"
    empty: EmptyPolicy = "error"
    skip_bad: bool = False
    #: Whether intervals and reasons are wanted, from those metrics that give them.
    explain: bool = False
    #: Where the classes live, so that metrics which the driver registered are known to the workers.
    entries: Mapping[str, RegisteredMetric] = field(default_factory=dict)

    @classmethod
    def of(cls, names: Iterable[str], **settings: Any) -> ScoringRecipe:
        """A recipe that carries its own part of the registry."""
        wanted = tuple(dict.fromkeys(names))
        for name in wanted:
            metric_class(name)  # refuses unknown names here, with a suggestion
        recipe = cls(wanted, entries={name: REGISTRY[name] for name in wanted}, **settings)
        if recipe.explain:
            check_explained(recipe.infos)
        return recipe

    @property
    def infos(self) -> dict[str, MetricInfo]:
        """What the metrics declare."""
        self._make_known()
        infos = {name: metric_class(name)[0].info for name in self.names}
        if self.options.get("reference") is None:
            return infos
        return {name: without_references(info) for name, info in infos.items()}

    @property
    def of_rows(self) -> tuple[str, ...]:
        """The metrics that give every row a value."""
        return tuple(name for name, info in self.infos.items() if info.level is not Level.SYSTEM)

    @property
    def of_systems(self) -> tuple[str, ...]:
        """The metrics that compare sets."""
        return tuple(name for name, info in self.infos.items() if info.level is Level.SYSTEM)

    def load(self, names: Iterable[str], **over: Any) -> dict[str, Metric]:
        """Some of the metrics, ready to score in this process."""
        self._make_known()
        wanted = list(names)
        weights = {name: checkpoint for name, checkpoint in self.checkpoints.items() if name in wanted}
        return load_metrics(wanted, {**self.options, **over}, weights)

    def _make_known(self) -> None:
        """Workers know of no metric that the driver registered, until they are told."""
        REGISTRY.update(self.entries)

    def task(self, metrics: Mapping[str, Metric]) -> Task:
        """The scoring of chunks by loaded metrics."""
        infos = {name: metric.info for name, metric in metrics.items()}
        return Task(Source(()), infos, self.level, self.scale, self.empty, metrics, self.explain)


@dataclass
class Packet:
    """Checked rows on their way to a model: what to score, token ids made ahead, and bad rows."""

    chunk: Chunk = field(default_factory=Chunk)
    #: What its part of an output is called, and the columns that its rows came with, where those are wanted.
    name: str = ""
    table: Any = None
    #: Token ids of all pairs by the identity of the tokenizer that laid them out.
    tokens: dict[Any, list[TokenPair]] = field(default_factory=dict)
    rejects: list[dict[str, Any]] = field(default_factory=list)


def packed(recipe: ScoringRecipe, rows: Iterable[Mapping[str, Any]], *, first: int, where: str) -> Packet:
    """Check rows and lay them out for the models, without one."""
    REGISTRY.update(recipe.entries)
    packet, columns = Packet(), Columns(recipe.columns)
    needs = frozenset().union(*(info.needs for info in recipe.infos.values()))
    for position, values in enumerate(rows):
        row = RawRow(first + position, where, values)
        try:
            if recipe.level is Level.DIALOGUE:
                packet.chunk.dialogues.append(to_dialogue(row, columns, empty=recipe.empty))
            else:
                packet.chunk.exchanges.append(to_exchange(row, columns, empty=recipe.empty, needs=needs))
        except BadRow as error:
            if not recipe.skip_bad:
                raise
            record = {"row": row.number, "where": where, "problem": error.problem, "raw": row.original}
            packet.rejects.append(record)
            continue
        packet.chunk.rows.append(row.number)
        packet.chunk.places.append(row.place)
    if packet.chunk.exchanges:
        for tokenizer in tokenizers(recipe):
            packet.tokens[tokenizer.identity] = tokenizer.pairs(packet.chunk.exchanges)
    return packet


def pieces(packet: Packet, size: int) -> Iterator[tuple[Chunk, dict[Any, list[TokenPair]]]]:
    """A packet in chunks of the size that models are given at once."""
    whole = packet.chunk
    for start in range(0, len(whole.rows), size):
        part = slice(start, start + size)
        chunk = Chunk(whole.rows[part], whole.places[part], whole.exchanges[part], whole.dialogues[part])
        yield chunk, {identity: pairs[part] for identity, pairs in packet.tokens.items()}


_KNOWN: dict[str, list[PairTokenizer]] = {}


def tokenizers(recipe: ScoringRecipe) -> list[PairTokenizer]:
    """The tokenizers of the metrics that have a checkpoint, once per worker process."""
    key = repr((recipe.names, recipe.options, recipe.checkpoints))
    if key not in _KNOWN:
        made = [_tokenizer(recipe, name) for name in recipe.of_rows]
        _KNOWN[key] = list({tokenizer.identity: tokenizer for tokenizer in made if tokenizer is not None}.values())
    return _KNOWN[key]


def _tokenizer(recipe: ScoringRecipe, name: str) -> PairTokenizer | None:
    from dialeval.approaches.learned import LearnedMetric

    found, preset = metric_class(name)
    if not issubclass(found, LearnedMetric):
        return None
    options = {**preset, **recipe.options}
    wanted = {key: options.get(key) for key in ("revision", "max_length", "truncation")}
    return found.tokenizer_of(recipe.checkpoints.get(name), **wanted)
