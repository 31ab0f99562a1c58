"""Masked-LM likelihood: how well a masked language model guesses each token of the reply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from dialeval.baselines.models import DEFAULT_BATCH_TOKENS, input_limit, load_language_model, token_batches
from dialeval.core.exchange import Exchange
from dialeval.core.scores import Signature
from dialeval.encoders.batching import choose_device, collate
from dialeval.encoders.layout import PairFormat, PairTokenizer, TokenPair
from dialeval.io.files import progress_bar
from dialeval.registry.metric import Judged, Level, Metric, MetricInfo


class MaskedLikelihood(Metric):
    """Each token of the reply is masked in turn, given the context and the rest of the reply.

    The value is the mean of the tokens' log-probabilities. A reply without tokens has none (NaN). The papers tune the
    model on their corpus first; any masked LM of Hugging Face can be given.
    """

    info = MetricInfo(
        name="mlm_likelihood",
        title="Masked-LM likelihood",
        level=Level.TURN,
        higher_is_better=True,
        range=(-np.inf, 0.0),
        summary="log-probability of the reply's tokens, each masked in turn",
        citation="Mehri and Eskenazi 2020, USR: An Unsupervised and Reference Free Evaluation Metric (USR-MLM)",
    )

    def __init__(
        self,
        *,
        model: str | None = None,
        revision: str | None = None,
        max_length: int | None = None,
        device: str | None = None,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
    ) -> None:
        network, tokenizer, identity = load_language_model(
            "AutoModelForMaskedLM", model, revision, needed_by=self.info.name, example="bert-base-uncased"
        )
        segments = getattr(network.config, "type_vocab_size", 0) > 1
        layout = PairFormat(
            max_length=input_limit(network.config, tokenizer, max_length) // 8 * 8, segment_ids=segments
        )
        self.stand_on(network.to(choose_device(device)), tokenizer, identity, layout, batch_tokens)

    def stand_on(self, network: Any, tokenizer: Any, identity: str, layout: PairFormat, batch_tokens: int) -> None:
        """Take a network that gives logits of the vocabulary for every token, wherever it comes from."""
        self.batch_tokens = batch_tokens
        self._network = network
        self._identity = identity
        self._mask_id = int(tokenizer.mask_token_id)
        # Batches are padded to a multiple of eight, which must not exceed what the model can take.
        self.max_length = layout.max_length
        self._segments = layout.segment_ids
        self._pairs = PairTokenizer(tokenizer, layout)
        (empty,) = self._pairs.pairs([Exchange(context=(), response="")])
        self._tail = len(empty.ids) - empty.boundary

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """One value per exchange; equal exchanges are computed once."""
        pairs = self._pairs.pairs(exchanges)
        distinct = list({pair.key: pair for pair in pairs}.values())
        value_of = dict(zip((pair.key for pair in distinct), self._values(distinct, progress), strict=True))
        values = np.array([value_of[pair.key] for pair in pairs])
        return Judged(values=values, n_truncated=sum(pair.cut for pair in pairs))

    def signature(self) -> Signature:
        """Model, length, and how tokens are put together."""
        return Signature(
            {
                "metric": self.info.name,
                "model": self._identity,
                "reduce": "mean",
                "max_length": str(self.max_length),
                "tidy": str(self._pairs.layout.tidy).lower(),
                "dtype": "float32",
            }
        )

    def _values(self, pairs: Sequence[TokenPair], progress: bool) -> list[float]:
        spots = [
            (row, position)
            for row, pair in enumerate(pairs)
            for position in range(pair.boundary, len(pair.ids) - self._tail)
        ]
        likelihoods: list[list[float]] = [[] for _ in pairs]
        guessed = np.empty(len(spots))
        with progress_bar(self.info.name, len(spots), shown=progress) as advance:
            for batch in token_batches([len(pairs[row].ids) for row, _ in spots], self.batch_tokens):
                rows, places = zip(*(spots[spot] for spot in batch), strict=True)
                guessed[batch] = self._guess([pairs[row] for row in rows], places)
                advance(len(batch))
        for (row, _), logarithm in zip(spots, guessed, strict=True):
            likelihoods[row].append(logarithm)
        return [float(np.mean(logarithms)) if logarithms else float("nan") for logarithms in likelihoods]

    @torch.inference_mode()
    def _guess(self, pairs: Sequence[TokenPair], positions: Sequence[int]) -> Any:
        inputs = collate(pairs, self._pairs.pad_id, segment_ids=self._segments)
        if not self._segments:
            del inputs["token_type_ids"]
        rows, places = torch.arange(len(pairs)), torch.tensor(positions)
        targets = inputs["input_ids"][rows, places].clone()
        inputs["input_ids"][rows, places] = self._mask_id
        logits = self.logits({key: value.to(self._network.device) for key, value in inputs.items()}, rows, places)
        chosen = logits.float().log_softmax(dim=-1).cpu()
        return chosen[rows, targets].double().numpy()

    def logits(self, inputs: dict[str, torch.Tensor], rows: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """`[rows, vocabulary]`: the network's logits at one place of every row."""
        logits_there: torch.Tensor = self._network(**inputs).logits[rows, places]
        return logits_there
