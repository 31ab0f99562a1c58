"""What a CMN checkpoint is worth: held-out contexts with several written replies, and with wrong ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from common import Recipe, read_validation
from corpora.dialogues import find_split, read_rows
from dialeval.core.exchange import Exchange
from dialeval.papers.cmn import Cmn, Scoring, combine
from dialeval.papers.cmn_network import CmnNetwork
from dialeval.papers.learned import quantile_curves
from stages import split_groups


class Validation:
    """Held-out contexts on which a checkpoint is judged, the same every time."""

    def __init__(self, recipe: Recipe, corpora: Path, bank: list[Exchange]) -> None:
        settings, rng = recipe["validation"], np.random.default_rng(recipe["seed"])
        held_out = read_validation(recipe, corpora)
        chosen = rng.permutation(len(held_out))[: settings["contexts"]]
        self.candidates = [held_out.get(int(index)).exchanges() for index in chosen]
        self.settings = settings["graded"]
        graded = []
        if self.settings:
            graded = list(read_rows(find_split(corpora, self.settings["corpus"], self.settings["split"])))
        if graded and recipe.get("groups"):  # an earlier stage was trained on the others
            held = {group.id for group in split_groups(recipe, corpora)[1]}
            graded = [row for row in graded if row["id"] in held]
        self.graded = [graded[int(index)] for index in rng.permutation(len(graded))]
        self.bank = bank

    def fill_bank(self, metric: Cmn, network: CmnNetwork) -> None:
        """Negatives from the training pairs, as the saved weights encode them."""
        posterior = metric.encoder.encode(self.bank).rows[:, : 2 * network.latent]
        prior = metric.contexts.encode(self.bank).rows
        for instance in (metric.network, network):
            instance.set_bank(posterior, prior)

    def measure(self, metric: Cmn, which: str) -> dict[str, float]:
        """How well good replies are told from others: by NSP alone, then by each combination beside a reference.

        `which` names the setting that says how many graded contexts. Where nobody wrote several replies to a context
        there is no reference beside a reply, and NSP alone decides. The reference is the first of the replies written
        for a context, the other ones are the good candidates. AUC is over all rows at once, as a correlation with
        human judgements would be.
        """
        rows = metric.encoder.encode([exchange for some in self.candidates for exchange in some]).rows
        margin = (rows[:, -1] - rows[:, -2]).reshape(len(self.candidates), -1)
        accuracy = ((margin[:, 0] > 0).mean() + (margin[:, 1:] <= 0).mean()) / 2
        figures = {"nsp_accuracy": accuracy, "nsp_r1": (margin[:, 0] > margin[:, 1:].max(axis=1)).mean()}
        if not self.graded:
            return {**{name: float(figure) for name, figure in figures.items()}, "selection": float(accuracy)}
        exchanges, kinds = [], []
        for row in self.graded[: self.settings[which]]:
            for kind, replies in candidates_of(row).items():
                exchanges += [beside_reference(row, reply) for reply in replies]
                kinds += [kind] * len(replies)
        parts = metric.components(exchanges)[0].T
        good, random = np.array(kinds) == "good", np.array(kinds) == "random"
        easy = good | random
        for scoring in get_args(Scoring):
            scores = combine(*parts, scoring)  # type: ignore[call-arg]
            figures[f"auc_{scoring}"] = roc_auc_score(good, scores)
            figures[f"auc_random_{scoring}"] = roc_auc_score(good[easy], scores[easy])
        for name, part in zip(("g", "mi_context", "mi_reference"), parts, strict=True):
            figures |= {f"{name}_good": part[good].mean(), f"{name}_random": part[random].mean()}
        # A checkpoint whose whole is worse than one of its parts pays for it.
        parts_alone = max(figures["auc_without_nsp"], figures["auc_without_mi"])
        figures["contexts"] = len(self.graded[: self.settings[which]])
        figures["selection"] = figures["auc_full"] - max(0.0, parts_alone - figures["auc_full"])
        return {name: float(figure) for name, figure in figures.items()}

    def quantiles(self, metric: Cmn) -> dict[str, Any]:
        """Curves of every combination: written replies beside another one as the reference, and random replies."""
        if not self.graded:
            return {}
        contexts = self.settings["quantile_contexts"]

        def components(kind: str) -> NDArray[np.float64]:
            rows = ((row, reply) for row in self.graded[:contexts] for reply in candidates_of(row)[kind])
            parts: NDArray[np.float64] = metric.components([beside_reference(row, reply) for row, reply in rows])[0].T
            return parts

        human, wrong = components("good"), components("random")
        return {
            scoring: quantile_curves(combine(*human, scoring), combine(*wrong, scoring))  # type: ignore[call-arg]
            for scoring in get_args(Scoring)
        }


def candidates_of(row: dict[str, Any]) -> dict[str, list[str]]:
    """Candidates by kind for a context with several written replies; the first of these is the reference."""
    return {
        "good": row["positive_responses"][1:],
        "adversarial": row["adversarial_negative_responses"],
        "random": row["random_negative_responses"],
    }


def beside_reference(row: dict[str, Any], reply: str) -> Exchange:
    """A candidate with what it is compared to."""
    return Exchange(context=tuple(row["context"]), response=reply, references=(row["positive_responses"][0],))
