"""USR's masked-word part (Mehri and Eskenazi 2020): how likely each token of the reply is when it is hidden."""

from __future__ import annotations

from pathlib import Path

import torch

from dialeval.baselines.likelihood import MaskedLikelihood
from dialeval.baselines.models import DEFAULT_BATCH_TOKENS
from dialeval.registry.interface import Level, MetricInfo
from dialeval_baselines.pairs import PairsNetwork


class UsrMlm(MaskedLikelihood):
    """`mlm_likelihood` with a head that was trained for our encoder, which has none of its own."""

    info = MetricInfo(
        name="usr_mlm",
        title="USR-MLM",
        level=Level.TURN,
        higher_is_better=True,
        range=(float("-inf"), 0.0),
        summary="log-probability of the reply's tokens, each hidden in turn",
        citation="Mehri and Eskenazi 2020, USR: An Unsupervised and Reference Free Evaluation Metric for Dialog "
        "Generation",
    )

    def __init__(
        self,
        checkpoint: str | Path | PairsNetwork | None = None,
        *,
        revision: str | None = None,
        device: str | torch.device | None = None,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
    ) -> None:
        """A network that is at hand already can stand in place of a checkpoint."""
        network = (
            checkpoint
            if isinstance(checkpoint, PairsNetwork)
            else PairsNetwork.from_pretrained(checkpoint, revision=revision, device=device)
        )
        self.stand_on(network, network.tokenizer, network.identity, network.config.layout, batch_tokens)
        self.network = network
        #: Benchmarks that the checkpoint was trained on.
        self.contaminated_by = frozenset(network.config.contaminated_by)

    def logits(self, inputs: dict[str, torch.Tensor], rows: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """The vocabulary's at the masked places only: over all places they would take most of the time."""
        types = inputs.get("token_type_ids", torch.zeros_like(inputs["input_ids"]))
        states = self.network.hidden(inputs["input_ids"], inputs["attention_mask"], types)
        return self.network.guesses(states[rows, places])
