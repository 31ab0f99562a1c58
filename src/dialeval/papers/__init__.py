"""The five papers' approaches: architecture, losses, scoring rule, in that order."""

from __future__ import annotations

from typing import Any

from dialeval.registry import REGISTRY, available, metric_class


def network_class(approach: str) -> Any:
    """The network class that reads checkpoints of an approach: that of the metric of its name.

    Checkpoints come from strangers, so only names of the registry are looked up. Metrics of another package may share a
    network that bears the name of none of them.
    """
    named = [approach] if approach in available() else [name for name, entry in REGISTRY.items() if entry.package]
    for name in named:
        network = getattr(metric_class(name)[0], "network_class", None)
        if network is not None and network.approach == approach:
            return network
    raise ValueError(f"no metric reads checkpoints of an approach {approach!r}; is its package installed?")


def register_auto_model() -> None:
    """Let `transformers.AutoModel.from_pretrained` load checkpoints of this library; imports transformers."""
    from transformers import AutoConfig, AutoModel, PretrainedConfig

    class DialevalConfig(PretrainedConfig):  # type: ignore[no-untyped-call]
        """Lets transformers recognise `model_type: dialeval`; the contents are read by `CheckpointConfig`."""

        model_type = "dialeval"

    class DialevalModel:
        """Loads the network of whichever approach the checkpoint belongs to."""

        config_class = DialevalConfig

        @classmethod
        def from_pretrained(cls, source: Any, *args: Any, **options: Any) -> Any:
            from dialeval.checkpoints.config import CheckpointConfig
            from dialeval.checkpoints.find import find_checkpoint
            from dialeval.papers import network_class

            located = find_checkpoint(source, default=str(source), revision=options.get("revision"))
            network = network_class(CheckpointConfig.read(located.folder).approach)
            wanted = {key: options[key] for key in ("revision", "device", "dtype", "trainable") if options.get(key)}
            return network.from_pretrained(source, **wanted)

    AutoConfig.register("dialeval", DialevalConfig, exist_ok=True)
    AutoModel.register(DialevalConfig, DialevalModel, exist_ok=True)
