"""BERTScore: greedy matching of contextual token vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np

from dialeval.baselines.models import count_longer, quiet_loading, readable_tokens, weights_identity
from dialeval.baselines.reference import Aggregation, ReferenceMetric, Values, library_version, require_library
from dialeval.checkpoints.find import BASE_ENCODER, find_encoder
from dialeval.core.exchange import Exchange, is_blank
from dialeval.encoders.batching import choose_device

require_library("bert_score")

Part = Literal["precision", "recall", "f1"]
_PARTS: tuple[Part, ...] = ("precision", "recall", "f1")


class BertScore(ReferenceMetric):
    """BERTScore by the bert-score package, without idf weights (they would tie a row to the others).

    Any Hugging Face encoder will do; without `layer` it is the layer that the package recommends
    for the model, and the last one for models it does not know. Values are not rescaled.
    """

    info = ReferenceMetric.declared(
        "bertscore",
        "BERTScore",
        "similarity of the contextual token vectors of reply and reference",
        "Zhang et al. 2020, BERTScore: Evaluating Text Generation with BERT",
        low=-1.0,
    )

    def __init__(
        self,
        *,
        model: str = BASE_ENCODER,
        revision: str | None = None,
        layer: int | None = None,
        part: Part = "f1",
        aggregation: Aggregation | None = None,
        device: str | None = None,
        batch_size: int = 64,
    ) -> None:
        super().__init__(aggregation)
        if part not in _PARTS:
            raise ValueError(f"part is {part!r}; it must be one of {', '.join(_PARTS)}")
        from bert_score import BERTScorer
        from bert_score.utils import model2layers
        from transformers import AutoConfig

        self.model = model
        self.part: Part = part
        self._located = find_encoder(model, revision=revision)
        config = AutoConfig.from_pretrained(self._located.folder, local_files_only=True)
        depth = int(config.num_hidden_layers)
        self.layer = int(model2layers.get(model, depth) if layer is None else layer)
        if not 1 <= self.layer <= depth:
            raise ValueError(f"layer is {self.layer}; {model} has the layers 1 to {depth}")
        with quiet_loading():
            self._scorer: Any = BERTScorer(
                model_type=str(self._located.folder),
                num_layers=self.layer,
                device=str(choose_device(device)),
                batch_size=batch_size,
                use_fast_tokenizer=True,
            )
        self._tokenizer: Any = self._scorer._tokenizer
        # Tokenizers without a limit of their own would let texts through that the encoder cannot take.
        self._tokenizer.model_max_length = readable_tokens(config, self._tokenizer)

    def compare(self, candidates: Sequence[str], references: Sequence[tuple[str, ...]], *, progress: bool) -> Values:
        """The chosen part of BERTScore; a blank text has nothing to match and gets 0."""
        values = np.zeros(len(candidates))
        texts = [(candidate, known) for candidate, (known,) in zip(candidates, references, strict=True)]
        rows = [row for row, (candidate, known) in enumerate(texts) if not (is_blank(candidate) or is_blank(known))]
        if rows:
            similarities = self._scorer.score(
                [texts[row][0] for row in rows], [texts[row][1] for row in rows], verbose=progress
            )
            values[rows] = similarities[_PARTS.index(self.part)].double().numpy()
        return values

    def count_truncated(self, exchanges: Sequence[Exchange]) -> int:
        """Rows in which the reply or a reference is longer than the encoder can take."""
        return count_longer(exchanges, self._tokenizer, self._tokenizer.model_max_length)

    def options(self) -> Mapping[str, str]:
        """Model, layer, part and library."""
        return {
            "model": self._identity,
            "layer": str(self.layer),
            "part": self.part,
            "lib": library_version("bert-score"),
        }

    @cached_property
    def _identity(self) -> str:
        return weights_identity(self.model, self._located)
