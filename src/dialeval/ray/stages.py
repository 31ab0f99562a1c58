"""The stages of a Ray job behind the check of rows: actors that hold models, and what they do with a packet."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dialeval.approaches.distribution import DistributionMetric
from dialeval.exchange import BadRow
from dialeval.ray.recipe import Packet, ScoringRecipe, pieces
from dialeval.scores import Scores
from dialeval.scoring.sets import SetPlan, SetState, check_mergeable, look
from dialeval.scoring.summary import Summary
from dialeval.scoring.survey import Survey
from dialeval.scoring.task import Chunk

#: Rows that a model is given at once, as `dialeval score` gives them.
PIECE_ROWS = 2048

#: A stage sends one packet to a row, pickled by our own workers for our own workers.
PACKET = "packet"


def sealed(content: Any) -> dict[str, Any]:
    """One row of a stage's output."""
    return {PACKET: np.array([pickle.dumps(content)], dtype=object)}


def unsealed(row: dict[str, Any]) -> Any:
    """What `sealed` closed, in the driver; what a worker could not score is raised here, in one sentence."""
    content = pickle.loads(row[PACKET])
    if isinstance(content, Exception):
        raise content
    return content


class ScoringActor(ABC):
    """An actor that takes packets. Input that cannot be scored is passed on as an error, not raised among workers."""

    @abstractmethod
    def work(self, packet: Packet) -> Any:
        """What becomes of one packet."""

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Open, work, close."""
        content = pickle.loads(batch[PACKET][0])
        if isinstance(content, Exception):
            return sealed(content)
        try:
            return sealed(self.work(content))
        except ValueError as error:
            return sealed(error)


def packing(make: Callable[[Any], Packet], table: Any) -> dict[str, Any]:
    """The stage in front of the actors: a packet, or why there is none."""
    try:
        return sealed(make(table))
    except ValueError as error:
        return sealed(error)


class Scoring:
    """Metrics of rows, loaded once per actor."""

    def __init__(self, recipe: ScoringRecipe) -> None:
        self.recipe = recipe
        self.metrics = recipe.load(recipe.of_rows)
        self.task = recipe.task(self.metrics)

    def records(self, packet: Packet) -> Iterator[dict[str, Any]]:
        """The finished records of a packet, piece by piece."""
        for chunk, tokens in pieces(packet, PIECE_ROWS):
            self._expect(chunk, tokens)
            yield self.task.score(chunk)

    def summary(self) -> Summary:
        """A summary of nothing yet."""
        return Summary.begin(str(self.recipe.level), self.task.infos)

    def _expect(self, chunk: Chunk, tokens: dict[Any, Any]) -> None:
        for metric in self.metrics.values():
            for attribute in getattr(metric, "pair_encoders", ()):
                tokenizer = getattr(metric, attribute).tokenizer
                if tokenizer.identity in tokens:
                    tokenizer.expect(chunk.exchanges, tokens[tokenizer.identity])


class Surveyor(ScoringActor):
    """Looks through rows for the metrics that compare sets, before any of them is encoded."""

    def __init__(self, recipe: ScoringRecipe) -> None:
        self.metrics = load_sets(recipe, device="cpu")

    def work(self, packet: Packet) -> Survey:
        """The survey of one packet."""
        survey, chunk = Survey(), packet.chunk
        try:
            look(self.metrics, survey, chunk.exchanges)
        except BadRow as error:  # a metric counts from the first row that it was given
            raise BadRow(chunk.places[int(error.row)], error.problem) from None
        return survey


class Reducer(ScoringActor):
    """Turns rows into moments and counts where they are encoded; features stay in the actor."""

    def __init__(self, recipe: ScoringRecipe, plan: SetPlan) -> None:
        self.metrics, self.plan = load_sets(recipe), plan

    def work(self, packet: Packet) -> tuple[SetState, int, int]:
        """Its state, how many rows it holds, and how many of them are empty."""
        state, empty = SetState(), 0
        for chunk, _ in pieces(packet, PIECE_ROWS):
            state.add(self.metrics, self.plan, chunk.exchanges)
            empty += sum(exchange.is_empty for exchange in chunk.exchanges)
        return state, len(packet.chunk.rows), empty


def plan_for(recipe: ScoringRecipe, survey: Survey) -> SetPlan:
    """What all reducers must agree on; finding clusters encodes a sample."""
    return SetPlan.make(load_sets(recipe), survey)


def values_of(recipe: ScoringRecipe, plan: SetPlan, state: SetState, n_empty: int) -> dict[str, Scores]:
    """The values of the systems, when everything is reduced."""
    found = state.scores(load_sets(recipe), plan)
    return {name: replace(scores, n_empty=n_empty) for name, scores in found.items()}


def load_sets(recipe: ScoringRecipe, **over: Any) -> dict[str, DistributionMetric]:
    """The metrics of a recipe that compare sets."""
    return dict(check_mergeable(recipe.load(recipe.of_systems, **over)))
