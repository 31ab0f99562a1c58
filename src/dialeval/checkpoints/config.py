"""What `config.json` of a checkpoint says: approach, base encoder, layout, recipe, quantiles, versions."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, Self, get_args

import torch

from dialeval.checkpoints.find import BASE_ENCODER, CheckpointError, file_sha256, find_encoder, first_line
from dialeval.checkpoints.untrusted import check_config, check_files, read_json, shown
from dialeval.encoders.layout import PairFormat
from dialeval.version import __version__

#: 2: the judge has tables of words and heads for faults; 3 and 4: other heads; 5: it names its heads and may bring its
#: own votes. All else of format 1 is still read.
FORMAT_VERSION = 5


Tuning = Literal["lora", "layers", "full", "frozen"]


@dataclass(frozen=True)
class EncoderSource:
    """Which base encoder a checkpoint stands on, and how it was tuned."""

    id: str = BASE_ENCODER
    revision: str | None = None
    sha256: str | None = None
    tuning: Tuning = "lora"
    #: Digest of the tuned layers, or of the adapter. A checkpoint that does not hold them shares an embedded one's.
    layers: str | None = None


@dataclass(frozen=True)
class LoraSettings:
    """Low-rank adapters on every linear layer of the encoder."""

    rank: int = 32
    alpha: int = 64
    dropout: float = 0.0
    #: Scaled by the root of the rank, so that the rate need not fall as the rank grows.
    rslora: bool = False


@dataclass(frozen=True)
class CheckpointConfig:
    """Everything in `config.json`."""

    approach: str
    name: str = ""
    encoder: EncoderSource = field(default_factory=EncoderSource)
    layout: PairFormat = field(default_factory=PairFormat)
    #: Architecture choices of the approach (widths, bank sizes); sizes of the encoder are never among them.
    architecture: Mapping[str, Any] = field(default_factory=dict)
    #: Quantiles of the scores of held-out human replies and of random replies.
    quantiles: Mapping[str, Any] = field(default_factory=dict)
    #: How it was made: recipe, corpora with licences, command, hardware, time, validation figures.
    training: Mapping[str, Any] = field(default_factory=dict)
    #: Benchmarks whose data it was trained on.
    contaminated_by: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    format_version: int = FORMAT_VERSION

    def to_json(self) -> str:
        """The text of `config.json`; `model_type` is what `AutoModel` looks for."""
        plain: dict[str, Any] = {"model_type": "dialeval", "architectures": [self.approach], **asdict(self)}
        # What only newer versions know is left out where it is not used, so that older ones still read the rest.
        for part, key in (("encoder", "layers"), ("layout", "turns")):
            if plain[part][key] is None:
                del plain[part][key]
        return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read and check a folder's `config.json`."""
        check_files(folder)
        path = folder / "config.json"
        if not path.exists():
            raise CheckpointError(f"{folder} has no config.json, so it is not a checkpoint folder")
        raw = read_json(path)
        if raw.get("model_type") != "dialeval":
            model_type = shown(raw.get("model_type"))
            raise CheckpointError(f"{folder} is not a dialeval checkpoint (its model_type is {model_type})")
        version = raw.get("format_version")
        if not isinstance(version, int) or not 1 <= version <= FORMAT_VERSION:
            raise CheckpointError(
                f"{folder} has format {shown(version)}, this dialeval reads up to {FORMAT_VERSION}; upgrade dialeval"
            )
        try:
            check_config(raw)
            known = {entry.name for entry in fields(cls)}
            values = {key: value for key, value in raw.items() if key in known}
            values["encoder"] = EncoderSource(**raw["encoder"])
            if values["encoder"].tuning not in get_args(Tuning):
                raise ValueError(f"the encoder's tuning is none of {', '.join(get_args(Tuning))}")
            values["layout"] = PairFormat(**raw["layout"])
            values["contaminated_by"] = tuple(raw.get("contaminated_by", ()))
            return cls(**values)
        except KeyError as error:
            raise CheckpointError(f"{path} is damaged: {error.args[0]} is missing") from None
        except (TypeError, ValueError) as error:
            raise CheckpointError(f"{path} is damaged: {first_line(error)}") from None


def current_versions() -> dict[str, str]:
    """Versions that a signature and a config record."""
    return {
        "dialeval": __version__,
        "torch": torch.__version__.split("+")[0],
        "transformers": version("transformers"),
        "python": platform.python_version(),
    }


def encoder_source(encoder_id: str, tuning: Tuning) -> EncoderSource:
    """Pin a base encoder by the digest of the weights that are at hand."""
    located = find_encoder(encoder_id)
    weights = located.folder / "model.safetensors"
    return EncoderSource(
        id=encoder_id,
        revision=located.revision,
        sha256=file_sha256(weights) if weights.is_file() else None,
        tuning=tuning,
    )
