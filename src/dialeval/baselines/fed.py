"""FED-style follow-up likelihood: would a listener rather praise or complain after this reply?"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dialeval.baselines.causal import CausalMetric, Continuation
from dialeval.core.exchange import Exchange
from dialeval.io.files import parse_json, read_small
from dialeval.registry.metric import Judged, Level, MetricInfo

#: Quality -> kind of follow-up -> sentences.
FollowUps = Mapping[str, Mapping[str, Sequence[str]]]
Sign = Literal["positive", "negative"]
_SIGNS: tuple[Sign, ...] = ("positive", "negative")
_OWN = Path(__file__).with_name("fed_followups.json")


def read_follow_ups(path: str | Path) -> FollowUps:
    """Read `{"quality": {"positive": [...], "negative": [...]}, ...}`; one of the two lists may be missing."""
    try:
        read = parse_json(read_small(Path(path).expanduser()))
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file of follow-ups at {path}") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(read, dict) or not read:
        raise ValueError(f"{path} holds no qualities; it maps each quality to its positive and negative follow-ups")
    for quality, lists in read.items():
        if not isinstance(lists, dict) or not lists or not set(lists) <= set(_SIGNS):
            raise ValueError(f"quality {quality!r} of {path} needs the lists 'positive' and 'negative', or one of them")
        for sign, sentences in lists.items():
            well = isinstance(sentences, list) and all(
                isinstance(sentence, str) and sentence.strip() for sentence in sentences
            )
            if not well:
                raise ValueError(f"the {sign} follow-ups of {quality!r} in {path} are not a list of sentences")
        if not any(lists.values()):
            raise ValueError(f"quality {quality!r} of {path} has no follow-ups; give it some or leave it out")
    return read


class FollowUpLikelihood(CausalMetric):
    """Mean NLL of complaining follow-ups minus mean NLL of praising ones, averaged over the qualities.

    The lists of follow-ups are this project's own; the published ones can be given as a JSON file
    (`follow_ups=`), the published model is DialoGPT-large. The likelihood is that of dialogue and
    follow-up together, as in the published code.
    """

    info = MetricInfo(
        name="fed",
        title="FED",
        level=Level.TURN,
        higher_is_better=True,
        range=(-np.inf, np.inf),
        summary="how much likelier praise is than complaint as the next turn",
        citation="Mehri and Eskenazi 2020, Unsupervised Evaluation of Interactive Dialog with DialoGPT",
    )
    example = "microsoft/DialoGPT-large"

    def __init__(self, *, follow_ups: str | Path | None = None, **options: Any) -> None:
        self.follow_ups = read_follow_ups(_OWN if follow_ups is None else follow_ups)
        super().__init__(**options)

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """One value per exchange; the values of each quality are in the details."""
        sentences = list(
            dict.fromkeys(text for lists in self.follow_ups.values() for one in lists.values() for text in one)
        )
        endings = [self.tokens(text) for text in sentences]
        laid: list[Continuation] = []
        n_truncated = 0
        for row in exchanges:
            turns = [self.tokens(turn) for turn in (*row.facts, *row.context, row.response)]
            of_row = [self.continuation(turns, ending) for ending in endings]
            laid += [Continuation(pair.ids, 1) for pair, _ in of_row]
            n_truncated += any(cut for _, cut in of_row)
        likelihood = self.mean_log_likelihood(laid, progress=progress)
        table = likelihood.reshape(len(exchanges), len(sentences))
        qualities = {name: self._quality(lists, sentences, table) for name, lists in self.follow_ups.items()}
        values = np.mean(list(qualities.values()), axis=0)
        return Judged(values=values, n_truncated=n_truncated, details={"qualities": qualities})

    def variant(self) -> Mapping[str, str]:
        """The follow-ups, and over what their likelihood is."""
        digest = hashlib.sha256(json.dumps(self.follow_ups, sort_keys=True).encode()).hexdigest()
        return {"followups": f"{len(self.follow_ups)} qualities@{digest}", "over": "conversation"}

    @staticmethod
    def _quality(lists: Mapping[str, Sequence[str]], sentences: list[str], table: NDArray[Any]) -> NDArray[Any]:
        """Log-likelihood of praise minus that of complaint; a list that is missing counts 0."""
        praise, complaint = (
            table[:, [sentences.index(text) for text in lists[sign]]].mean(axis=1) if lists.get(sign) else 0.0
            for sign in _SIGNS
        )
        return np.asarray(praise - complaint)
