"""Cosine of sentence embeddings, the role that SimCSE plays in the papers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np

from dialeval.baselines.models import count_longer, quiet_loading, weights_identity
from dialeval.baselines.reference import Aggregation, ReferenceMetric, Values, library_version, require_library
from dialeval.checkpoints.find import BASE_ENCODER, find_encoder
from dialeval.core.exchange import Exchange
from dialeval.encoders.batching import choose_device

require_library("sentence_transformers")

Pooling = Literal["model", "pooler"]


class SentenceCosine(ReferenceMetric):
    """Cosine of the sentence embeddings of reply and reference, by sentence-transformers.

    `pooling="model"` is what the model's own configuration says. Models without one need `pooler`, such as
    `model="princeton-nlp/sup-simcse-bert-base-uncased"`.
    """

    info = ReferenceMetric.declared(
        "sentence_cosine",
        "Sentence embedding cosine",
        "cosine of the sentence embeddings of reply and reference",
        "Reimers and Gurevych 2019, Sentence-BERT; Gao et al. 2021, SimCSE",
        low=-1.0,
    )

    def __init__(
        self,
        *,
        model: str = BASE_ENCODER,
        revision: str | None = None,
        pooling: Pooling = "model",
        aggregation: Aggregation | None = None,
        device: str | None = None,
        batch_size: int = 64,
    ) -> None:
        super().__init__(aggregation)
        self.model = model
        self.pooling = pooling
        self.batch_size = batch_size
        self._located = find_encoder(model, revision=revision)
        with quiet_loading():
            self._encoder = self._load(str(choose_device(device)))

    def compare(self, candidates: Sequence[str], references: Sequence[tuple[str, ...]], *, progress: bool) -> Values:
        """Cosine of each candidate with its one reference."""
        known = [text for (text,) in references]
        texts = list(dict.fromkeys([*candidates, *known]))
        encoded = self._encoder.encode(texts, batch_size=self.batch_size, show_progress_bar=progress)
        vectors = np.asarray(encoded, dtype=np.float64)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        row = {text: number for number, text in enumerate(texts)}
        first, second = vectors[[row[text] for text in candidates]], vectors[[row[text] for text in known]]
        return np.asarray(np.clip(np.einsum("ij,ij->i", first, second), -1, 1))

    def count_truncated(self, exchanges: Sequence[Exchange]) -> int:
        """Rows in which the reply or a reference is longer than the model reads."""
        limit = self._encoder.max_seq_length
        return 0 if limit is None else count_longer(exchanges, self._encoder.tokenizer, limit)

    def options(self) -> Mapping[str, str]:
        """Model, pooling and library."""
        return {"model": self._identity, "pooling": self.pooling, "lib": library_version("sentence-transformers")}

    @cached_property
    def _identity(self) -> str:
        return weights_identity(self.model, self._located)

    def _load(self, device: str) -> Any:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.models import Transformer

        folder = str(self._located.folder)
        if self.pooling == "model":
            if not (self._located.folder / "modules.json").is_file():
                raise ValueError(f"{self.model} does not say how it pools; pass pooling='pooler'")
            return SentenceTransformer(folder, device=device, local_files_only=True)
        if self.pooling == "pooler":
            forward = {"text": {"method": "forward", "method_output_name": "pooler_output"}}
            whole = Transformer(folder, modality_config=forward, module_output_name="sentence_embedding")
            return SentenceTransformer(modules=[whole], device=device)
        raise ValueError(f"pooling is {self.pooling!r}; it must be 'model' or 'pooler'")
