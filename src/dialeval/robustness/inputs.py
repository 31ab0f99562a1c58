"""What robustness is tried on: a benchmark or a file becomes pairs of true and attacked replies."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from dialeval.core.exchange import Exchange
from dialeval.robustness.attacks import Attack, Pool, choose_attacks

if TYPE_CHECKING:
    from dialeval.benchmarks import Benchmark
    from dialeval.readers import Source


@dataclass(frozen=True)
class Pair:
    """A true reply and an attacked one. `domain` tells corpora of one set apart.

    `plain` is the attacked reply without what it says to steer a judge, `neutral` with a sentence in its place that
    asks for nothing.
    """

    attack: str
    harmful: bool
    true: Exchange
    attacked: Exchange
    domain: str | None = None
    plain: Exchange | None = None
    neutral: Exchange | None = None

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """All of them."""
        return tuple(
            exchange for exchange in (self.true, self.attacked, self.plain, self.neutral) if exchange is not None
        )


def attacked_pairs(
    exchanges: Sequence[Exchange], attacks: Iterable[Attack], *, seed: int = 0
) -> tuple[list[Pair], dict[str, int]]:
    """Pairs of every reply with every attack, and for each attack how many replies it could not change."""
    pool = Pool(exchanges)
    pairs: list[Pair] = []
    untouched: dict[str, int] = {}
    for attack in attacks:
        untouched[attack.name] = 0
        for exchange in exchanges:
            # A reference that is the reply itself would settle the matter for metrics that compare with it.
            true = without_itself(exchange)
            changed = attack.apply(true, pool, seed=seed)
            if changed is None:
                untouched[attack.name] += 1
            else:
                plain = attack.on.apply(true, pool, seed=seed) if attack.on else None
                neutral = attack.apply(true, pool, seed=seed, change=attack.neutral) if attack.neutral else None
                pairs.append(Pair(attack.name, attack.harmful, true, changed, plain=plain, neutral=neutral))
    return pairs, untouched


def benchmark_pairs(benchmark: Benchmark) -> list[Pair]:
    """The pairs of a benchmark that holds true replies beside attacked ones."""
    pairs = []
    for row in benchmark.dataset:
        references, facts = (tuple(row[name] or ()) for name in ("references", "facts"))
        true = without_itself(Exchange(tuple(row["context"]), row["response"], references, facts))
        context = tuple(row["adversarial_context"] or ()) or true.context
        attacked = replace(true, context=context, response=row["adversarial_response"])
        pairs.append(Pair(row["attack"] or "adversarial", bool(row["harmful"]), true, attacked, row["domain"]))
    return pairs


def without_itself(exchange: Exchange) -> Exchange:
    """The exchange without references that equal its own reply."""
    words = exchange.response.split()
    return replace(exchange, references=tuple(text for text in exchange.references if text.split() != words))


def key_of(exchange: Exchange) -> str:
    """A digest of everything that a metric may look at: equal exchanges are scored once."""
    parts = (exchange.context, (exchange.response,), exchange.references, exchange.facts)
    text = "\1".join("\0".join(part) for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Material:
    """What metrics are tried on."""

    name: str
    pairs: Sequence[Pair]
    notes: Sequence[str] = ()
    #: Metrics that were trained on it, by the benchmark's declaration.
    contaminates: Sequence[str] = ()

    @property
    def revision(self) -> str:
        """A short digest that changes with any pair."""
        from dialeval.agreement.values import rows_digest

        return rows_digest(f"{pair.attack} {key_of(pair.true)} {key_of(pair.attacked)}" for pair in self.pairs)


def gather(
    source: str | os.PathLike[str],
    attacks: Collection[str] = ("all",),
    *,
    seed: int = 0,
    sample: int | None = None,
    mirror: str | os.PathLike[str] | None = None,
    rows: Source | None = None,
) -> Material:
    """Find true replies in a benchmark or a file of rows, and attack them.

    True replies are those of people: of rated benchmarks the human system or else the references, of
    labelled ones the replies labelled good; of a plain file every reply. A set that brings its own
    attacks is taken as it is. `sample` keeps so many of the true replies, drawn by the seed. `rows` says how a plain
    file is read.
    """
    rows_read = read_input(source, mirror, rows)
    contaminates: Sequence[str] = ()
    if isinstance(rows_read, list):
        name, exchanges = Path(source).name, rows_read
    elif rows_read.info.kind == "pairs":
        return _own_attacks(rows_read, attacks, sample, seed)
    else:
        name, exchanges, contaminates = rows_read.info.name, true_replies(rows_read), rows_read.info.contaminates
    if sample is not None and sample < len(exchanges):
        exchanges = Random(seed).sample(exchanges, sample)
    chosen, lacking = choose_attacks(attacks)
    pairs, untouched = attacked_pairs(exchanges, chosen, seed=seed)
    notes = [f"{attack} was left out: {reason}" for attack, reason in lacking.items()]
    notes += [
        f"{attack} could not change {count} of {len(exchanges)} replies" for attack, count in untouched.items() if count
    ]
    if not pairs:
        raise ValueError(f"{name} has no reply that the attacks could change; choose others or another input")
    return Material(name, pairs, notes, contaminates)


def true_replies(benchmark: Benchmark) -> list[Exchange]:
    """The replies of people in a benchmark, each once for its context."""
    info = benchmark.info
    if info.level != "turn":
        raise ValueError(f"{info.name} holds whole dialogues; robustness needs single replies")
    exchanges: dict[tuple[tuple[str, ...], str], Exchange] = {}
    for row in benchmark.dataset:
        context, references = tuple(row["context"]), tuple(row["references"] or ())
        if info.kind == "labels":
            replies = [row["response"]] if row["label"] == 1 else []
        elif info.human_systems:
            replies = [row["response"]] if row["system"] in info.human_systems else []
        else:
            replies, references = list(references[:1]), references[1:]
        for reply in replies:
            if reply.strip() and any(turn.strip() for turn in context):
                exchange = Exchange(
                    context=context, response=reply, references=references, facts=tuple(row["facts"] or ())
                )
                exchanges.setdefault((context, reply), exchange)
    if not exchanges:
        raise ValueError(f"{info.name} holds no replies of people, neither as a system nor as references")
    return list(exchanges.values())


def _own_attacks(benchmark: Benchmark, attacks: Collection[str], sample: int | None, seed: int) -> Material:
    pairs = benchmark_pairs(benchmark)
    names = dict.fromkeys(pair.attack for pair in pairs)
    if list(attacks) != ["all"]:
        unknown = [name for name in attacks if name not in names]
        if unknown:
            raise ValueError(f"{benchmark.info.name} has no attack {unknown[0]!r}; it has {', '.join(names)}, or all")
        pairs = [pair for pair in pairs if pair.attack in attacks]
    if sample is not None and sample < len(pairs):
        pairs = Random(seed).sample(pairs, sample)
    return Material(benchmark.info.name, pairs, contaminates=benchmark.info.contaminates)


def read_input(
    source: str | os.PathLike[str], mirror: str | os.PathLike[str] | None, rows: Source | None = None
) -> Benchmark | list[Exchange]:
    """A benchmark by name or from a file of judged rows, or the exchanges of a plain file."""
    from dialeval import benchmarks
    from dialeval.agreement.prepare import open_benchmark
    from dialeval.readers import Source

    text = os.fspath(source)
    if text.partition("@")[0] in benchmarks.available():
        return open_benchmark(text, mirror)
    if text.endswith(benchmarks.SUFFIXES) and _is_judged(Path(text)):
        return benchmarks.load(Path(text))
    return [exchange for _, exchange in (rows or Source(text)).exchanges()]


def _is_judged(path: Path) -> bool:
    """Whether the rows carry what a benchmark has: ratings, labels, or attacked replies."""
    from dialeval.benchmarks.rowfile import kind_of
    from dialeval.core.exchange import BadRow
    from dialeval.readers.text import json_rows

    if not path.is_file():
        return False
    with path.open("rb") as stream:
        first = next(iter(json_rows(stream, path.name)), None)
    try:
        return first is not None and first.values is not None and bool(kind_of(first))
    except BadRow:
        return False
