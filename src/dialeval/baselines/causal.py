"""Causal-LM likelihood: how likely a left-to-right language model finds the reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from dialeval.baselines.models import DEFAULT_BATCH_TOKENS, input_limit, load_language_model, token_batches
from dialeval.core.exchange import Exchange
from dialeval.core.scores import Signature
from dialeval.encoders.batching import choose_device
from dialeval.encoders.layout import tidy
from dialeval.io.files import progress_bar
from dialeval.registry.metric import Judged, Level, Metric, MetricInfo


class Continuation(NamedTuple):
    """Token ids, and from which of them on the likelihood counts."""

    ids: tuple[int, ...]
    start: int


class CausalMetric(Metric):
    """A causal language model that reads dialogues: turns are divided by the end-of-text token."""

    #: A model that will do.
    example: ClassVar[str]

    def __init__(
        self,
        *,
        model: str | None = None,
        revision: str | None = None,
        max_length: int | None = None,
        device: str | None = None,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
    ) -> None:
        network, self._tokenizer, self._identity = load_language_model(
            "AutoModelForCausalLM", model, revision, needed_by=self.info.name, example=self.example
        )
        self._network: Any = network.to(choose_device(device))
        self._batch_tokens = batch_tokens
        self.max_length = input_limit(network.config, self._tokenizer, max_length)
        if self._tokenizer.eos_token_id is None:
            raise ValueError(f"{model} has no end-of-text token to divide turns by; pass another model")
        self._end = int(self._tokenizer.eos_token_id)
        begin = self._tokenizer.bos_token_id
        #: Models whose beginning has a token of its own expect it.
        self._begin = () if begin is None or begin == self._end else (int(begin),)

    def variant(self) -> Mapping[str, str]:
        """What else decides a value."""
        return {}

    def signature(self) -> Signature:
        """Model, what else the metric stands on, length."""
        return Signature(
            {
                "metric": self.info.name,
                "model": self._identity,
                **self.variant(),
                "max_length": str(self.max_length),
                "tidy": "true",
                "dtype": "float32",
            }
        )

    def tokens(self, text: str) -> list[int]:
        """Token ids of one turn. What looks like a special token in the text stays text."""
        ids: list[int] = self._tokenizer(tidy(text), add_special_tokens=False, split_special_tokens=True)["input_ids"]
        return ids

    def continuation(self, turns: Sequence[Sequence[int]], target: Sequence[int]) -> tuple[Continuation, bool]:
        """Turns and a target laid out in a row; the beginning of the turns is cut off where it is too long.

        The target keeps at most three quarters of the length. Also tells whether anything was cut.
        """
        kept = target[: self.max_length * 3 // 4]
        context = [token for turn in turns for token in (*turn, self._end)]
        room = self.max_length - len(kept) - len(self._begin)
        # Even without a context the target's first token needs something before it.
        head = (*self._begin, *context[-room:]) or (self._end,)
        cut = len(kept) < len(target) or len(context) > room
        return Continuation((*head, *kept), len(head)), cut

    def mean_log_likelihood(self, continuations: Sequence[Continuation], *, progress: bool) -> NDArray[Any]:
        """Mean log-probability of the tokens from `start` on; NaN where there are none."""
        distinct = list(dict.fromkeys(continuations))
        values = np.full(len(distinct), np.nan)
        with progress_bar(self.info.name, len(distinct), shown=progress) as advance:
            for batch in token_batches([len(continuation.ids) for continuation in distinct], self._batch_tokens):
                values[batch] = self._run([distinct[row] for row in batch])
                advance(len(batch))
        position = {continuation: number for number, continuation in enumerate(distinct)}
        return values[[position[continuation] for continuation in continuations]]

    @torch.inference_mode()
    def _run(self, batch: Sequence[Continuation]) -> list[float]:
        width = max(len(continuation.ids) for continuation in batch)
        ids = torch.full((len(batch), width), self._end)
        mask = torch.zeros((len(batch), width), dtype=torch.long)
        for row, one in enumerate(batch):
            ids[row, : len(one.ids)] = torch.tensor(one.ids)
            mask[row, : len(one.ids)] = 1
        device = self._network.device
        logits = self._network(input_ids=ids.to(device), attention_mask=mask.to(device)).logits
        means = []
        for row, one in enumerate(batch):
            # What stands at a position is foretold by the position before it.
            foretold = logits[row, one.start - 1 : len(one.ids) - 1].float().log_softmax(dim=-1).cpu()
            truth = torch.tensor(one.ids[one.start :], dtype=torch.long)
            likelihoods = foretold[torch.arange(len(truth)), truth].double()
            means.append(float(likelihoods.mean()) if len(likelihoods) else float("nan"))
        return means


class CausalLikelihood(CausalMetric):
    """Mean log-probability of the reply's tokens after the context (minus the log of its perplexity).

    The end of the reply is not part of it. The papers tune GPT-2 on their corpus first; any causal
    LM of Hugging Face can be given.
    """

    info = MetricInfo(
        name="lm_likelihood",
        title="Causal-LM likelihood",
        level=Level.TURN,
        higher_is_better=True,
        range=(-np.inf, 0.0),
        summary="mean log-probability of the reply's tokens after the context",
        citation="Pang et al. 2020, Towards Holistic and Automatic Evaluation of Open-Domain Dialogue Generation",
    )
    example = "gpt2"

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """One value per exchange; equal exchanges are computed once."""
        laid = [
            self.continuation([*map(self.tokens, row.facts + row.context)], self.tokens(row.response))
            for row in exchanges
        ]
        values = self.mean_log_likelihood([continuation for continuation, _ in laid], progress=progress)
        return Judged(values=values, n_truncated=sum(cut for _, cut in laid))
