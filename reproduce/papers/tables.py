"""What a paper's table is: published numbers, and the question behind each of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dialeval.agreement.settings import Settings
from dialeval.core.specs import split_options


@dataclass(frozen=True)
class CellQuery:
    """What the harness is asked for one of our numbers."""

    benchmark: str
    statistic: str
    settings: Settings = field(default_factory=Settings)
    level: str = "turn"
    aspect: str = ""


@dataclass(frozen=True)
class Column:
    """A column: published numbers under `title`, and ours, times `scale`, where there is a question.

    Or the plain mean of what other columns show of ours.
    """

    title: str
    question: CellQuery | None = None
    scale: float = 1.0
    average_of: Sequence[str] = ()


@dataclass(frozen=True)
class Row:
    """A metric: what the paper calls it, what it published, and how ours is called in the harness, if we have it.

    `note` says where ours differs in data or encoder. `lacks` is what cannot be had here, so that a cell without a
    number says which of the two it is.
    """

    label: str
    published: Mapping[str, float] = field(default_factory=dict)
    ours: str | None = None
    note: str = ""
    lacks: Literal["", "weights", "data"] = ""
    #: Further runs of the same training with other seeds; cells then show the mean and how far seeds lie apart.
    repeats: Sequence[str] = ()

    @property
    def specs(self) -> tuple[str, ...]:
        """Everything of ours that a cell is made of."""
        return () if self.ours is None else (self.ours, *self.repeats)

    @property
    def source(self) -> str | None:
        """The name under which the harness keeps our values."""
        if self.ours is None:
            return None
        name, options = split_options(self.ours)
        return str(options.get("name", name))


@dataclass(frozen=True)
class Table:
    """One table of a paper."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    note: str = ""
    #: What is to be known of a checkpoint beside the numbers, told when the page is rendered.
    remark: Callable[[], str] | None = None


@dataclass(frozen=True)
class Paper:
    """All tables of a paper that can be laid beside ours, and what stands elsewhere or nowhere."""

    name: str
    title: str
    tables: Sequence[Table]
    elsewhere: Sequence[str] = ()


def published(columns: Sequence[str], *values: float | None) -> dict[str, float]:
    """Printed numbers in the order of the columns; None where the paper has none."""
    return {name: value for name, value in zip(columns, values, strict=True) if value is not None}


def ablation(variant: str, **options: str) -> str:
    """How a run of `reproduce/ablations.py` enters the harness: under the variant's name and those of its options."""
    approach, _, rest = variant.partition("-")
    name = "_".join((approach, rest, *options.values()))
    given = {"checkpoint": f"runs/ablations/{variant}/checkpoint", **options, "name": name}
    return f"{approach}?" + "&".join(f"{key}={value}" for key, value in given.items())


#: What is said of how ours differs.
HEAD = "a head on our fixed encoder"
OTHER_ENCODER = "our encoder has 22.7 M parameters, the paper's 110 M"
JUDGES_ENCODER = f"{OTHER_ENCODER}, and learned from ratings of other data, too"
SHORT_TRAINING = (
    "Ours: every row had the same few minutes of training with one seed (reproduce/recipes/ablations.yaml; from "
    "density-lora.yaml, which tells true from random replies already), so compare rows with each other, not with the "
    "shipped checkpoints."
)
