"""The judge's network: an encoder, a linear head per task, and the tables that its rule reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dialeval.checkpoints.network import Network, unit_matrix
from dialeval.judge import lexical, row_signs
from dialeval.judge.rule import DIALOGUE_FEATURES, FEATURES, Matrix, Vector, votes_of

#: Reference values kept of each feature, and the bins of outcomes that have an interval of their own.
TABLE_SIZE, INTERVAL_BINS = 401, 5
#: What heads may say, one logit each. A checkpoint names those that it has; some are learned with the encoder, those
#: for faults are fitted on it, and so are `informative`, `preferred` and `satisfied`, which reads the other side's next
#: turn. `whole` reads a conversation at once.
HEADS = (
    "next", "follows", "valid", "fluent", "consistent", "respectful", "faithful", "satisfied", "preferred",
    "informative", "whole",
)  # fmt: skip
#: Heads that read something else than a reply.
OF_OTHERS = ("satisfied", "whole")
#: `preferred` learned from answers of assistants, six in seven of them as long; of shorter replies it says nothing.
ANSWER_WORDS = 45
#: What checkpoints have that name none.
_FIRST_HEADS = HEADS[:7]
_FIRST_DIALOGUE_FEATURES = (
    "coherent", "weakest", "not_repetitive", "not_echoing", "engaged", "positive", "lively", "not_complaining"
)  # fmt: skip


class JudgeNetwork(Network):
    """Encoder, a linear head per task, what the signs are read with. A row: the first token's features, then logits."""

    approach = "judge"
    oldest_format = 4

    @property
    def features(self) -> dict[str, tuple[str, ...]]:
        """The features that this checkpoint has tables for, by level."""
        if self.config.format_version < 5:
            return {"turn": FEATURES[:12], "dialogue": _FIRST_DIALOGUE_FEATURES}
        return {"turn": FEATURES, "dialogue": DIALOGUE_FEATURES}

    def tables(self, level: Literal["turn", "dialogue"]) -> Matrix:
        """The reference values of every feature; those of one that the checkpoint does not know are never asked for."""
        kept, names = self.array(f"{level}_tables"), self.features[level]
        wanted = FEATURES if level == "turn" else DIALOGUE_FEATURES
        unknown = np.linspace(0, 1, TABLE_SIZE)
        return np.stack([kept[names.index(name)] if name in names else unknown for name in wanted])

    @property
    def has_unit(self) -> bool:
        """Whether heads for faults have the unit of sound human replies, see `FAULTS`; older ones have ranks alone."""
        return self.config.format_version >= 5

    @property
    def head_names(self) -> tuple[str, ...]:
        """The heads that this checkpoint has."""
        named = str(self.config.architecture.get("heads", "")).split()
        return tuple(named) or _FIRST_HEADS

    @property
    def votes(self) -> Vector:
        """How much each feature of a reply counts here."""
        return np.array(list(votes_of(self.config.architecture).values()))

    @property
    def answer_words(self) -> int:
        """Of how many words on `preferred` speaks: where the encoder learned it beside short replies, of all."""
        return int(self.config.architecture.get("answer_words", ANSWER_WORDS))

    @property
    def has_density(self) -> bool:
        """Whether relative density counts here; a judge that does without it keeps no Gaussians."""
        return bool(self.votes[FEATURES.index("human_like")])

    def build_heads(self, width: int) -> None:
        """Heads, the two Gaussians of relative density, the tables that make ranks of features."""
        self.heads = nn.Linear(width, len(self.head_names))
        for name in ("human", "random") if self.has_density else ():
            self.register_buffer(f"{name}_mean", torch.zeros(width))
            self.register_buffer(f"{name}_precision", unit_matrix(width))
        self.register_buffer("rarity", torch.zeros(lexical.IDF_BUCKETS))
        self.register_buffer("runs", torch.zeros(lexical.RUNS, dtype=torch.int32))
        self.register_buffer("run_counts", torch.zeros(lexical.RUNS, dtype=torch.uint8))
        self.register_buffer("fluency", unit_matrix(1, lexical.Wording.SIGNS + 2)[0])
        if self.config.architecture.get("corrected"):
            beside = len(self.head_names) + len(self.features["turn"]) + len(row_signs.COUNTS)
            self.register_buffer("correction", torch.zeros(2, width + beside + 2))
        for level, features in self.features.items():
            grid = np.tile(np.linspace(0, 1, TABLE_SIZE, dtype=np.float32), (len(features), 1))
            self.register_buffer(f"{level}_tables", torch.from_numpy(grid))
            self.register_buffer(f"{level}_interval", torch.zeros(3, INTERVAL_BINS + 1))

    def rows(self, first: Tensor) -> Tensor:
        """`[batch, width + heads]`."""
        return torch.cat([first, self.heads(first)], dim=-1)

    def split(self, rows: NDArray[np.float32]) -> tuple[NDArray[np.float32], dict[str, Vector]]:
        """Rows of the network as states and the logits of each head."""
        states, logits = np.split(rows, [self.heads.in_features], axis=1)
        return states, {name: logits[:, number].astype(np.float64) for number, name in enumerate(self.head_names)}

    def correct(self, correction: Matrix, lifted: Sequence[str] = ()) -> None:
        """Keep what a user's ratings add, see `dialeval.tuning.crossing`, and the vetoes that they speak against."""
        without = dict.fromkeys([*self.lifted, *lifted])
        chosen = {"corrected": True, **({"lifted": " ".join(without)} if without else {})}
        self.config = replace(self.config, architecture={**self.config.architecture, **chosen})
        self.register_buffer("correction", torch.as_tensor(correction, dtype=torch.float32))

    @property
    def lifted(self) -> list[str]:
        """Features whose vetoes do not count: ratings spoke against them, or the judge did not learn enough of them."""
        return str(self.config.architecture.get("lifted", "")).split()

    def array(self, name: str) -> Vector:
        """A buffer as numpy keeps it."""
        return np.asarray(getattr(self, name).detach().cpu().numpy(), dtype=np.float64)

    def wording(self) -> lexical.Wording:
        """The counts of runs of words, as they are stored: a row looks up a few of a million."""
        return lexical.Wording(*(self.get_buffer(name).detach().cpu().numpy() for name in ("runs", "run_counts")))

    def set_array(self, name: str, values: Any) -> None:
        """Fill a buffer."""
        buffer: Tensor = getattr(self, name)
        buffer.copy_(torch.as_tensor(np.asarray(values), dtype=buffer.dtype).reshape(buffer.shape))
