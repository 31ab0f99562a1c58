"""transformers' `AutoModel` for checkpoints of this library, after one explicit call."""

from __future__ import annotations

from typing import Any


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
