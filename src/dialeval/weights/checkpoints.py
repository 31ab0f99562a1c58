"""Checkpoints: one folder format for disk and Hub, safetensors and JSON only.

config.json         approach, base encoder (id, revision, sha256), layout, recipe, quantiles, versions
model.safetensors   heads and fitted statistics; the encoder too if it was fully tuned
encoder.json        the encoder's configuration, if it was fully tuned: such a checkpoint needs no base encoder
adapter/            LoRA weights in PEFT's format, if it was tuned that way
tokenizer files, README.md (the model card)
"""

from __future__ import annotations

import copy
import json
import os
import platform
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args
from weakref import WeakValueDictionary

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from dialeval import __version__
from dialeval.engine.encoding import choose_device, choose_dtype
from dialeval.engine.formatting import PairFormat
from dialeval.io import private_until_done
from dialeval.weights.find import (
    BASE_ENCODER,
    CheckpointError,
    Located,
    file_sha256,
    find_checkpoint,
    find_encoder,
    first_line,
)
from dialeval.weights.untrusted import (
    MAX_NEW_TOKENS,
    adapter_settings,
    check_config,
    check_files,
    check_sizes,
    read_json,
    tensor_shapes,
)

FORMAT_VERSION = 1
Tuning = Literal["lora", "full", "frozen"]


@dataclass(frozen=True)
class EncoderSource:
    """Which base encoder a checkpoint stands on, and how it was tuned."""

    id: str = BASE_ENCODER
    revision: str | None = None
    sha256: str | None = None
    tuning: Tuning = "lora"


@dataclass(frozen=True)
class LoraSettings:
    """Low-rank adapters on every linear layer of the encoder."""

    rank: int = 32
    alpha: int = 64
    dropout: float = 0.0


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
        plain = {"model_type": "dialeval", "architectures": [self.approach], **asdict(self)}
        return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read and check a folder's `config.json`."""
        path = folder / "config.json"
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise CheckpointError(f"{folder} has no config.json, so it is not a checkpoint folder") from None
        except (OSError, ValueError, RecursionError) as error:
            raise CheckpointError(f"{path} is damaged: {first_line(error)}") from None
        if not isinstance(raw, dict) or raw.get("model_type") != "dialeval":
            told = raw.get("model_type") if isinstance(raw, dict) else type(raw).__name__
            raise CheckpointError(f"{folder} is not a dialeval checkpoint (its model_type is {told!r})")
        version = raw.get("format_version")
        if not isinstance(version, int) or not 1 <= version <= FORMAT_VERSION:
            raise CheckpointError(
                f"{folder} has format {version!r}, this dialeval reads up to {FORMAT_VERSION}; upgrade dialeval"
            )
        try:
            check_config(raw)
            known = {entry.name for entry in fields(cls)}
            values = {key: value for key, value in raw.items() if key in known}
            values["encoder"] = _checked_encoder(raw["encoder"])
            values["layout"] = PairFormat(**raw["layout"])
            values["contaminated_by"] = tuple(raw.get("contaminated_by", ()))
            return cls(**values)
        except KeyError as error:
            raise CheckpointError(f"{path} is damaged: {error.args[0]} is missing") from None
        except (TypeError, ValueError) as error:
            raise CheckpointError(f"{path} is damaged: {first_line(error)}") from None


def _checked_encoder(raw: Mapping[str, Any]) -> EncoderSource:
    source = EncoderSource(**raw)
    if source.tuning not in get_args(Tuning):
        raise ValueError(f"the encoder's tuning is none of {', '.join(get_args(Tuning))}")
    return source


class Network(nn.Module):
    """The networks of one approach: an encoder (or several over one base) and heads.

    Sub-classes build their heads in `build_heads` and say in `forward` what one row of numbers is.
    """

    approach: ClassVar[str]
    #: Attributes that hold encoders. Each gets its own adapter over the same base weights.
    encoders: ClassVar[tuple[str, ...]] = ("encoder",)

    def __init__(self, config: CheckpointConfig, base: Mapping[str, nn.Module], tokenizer: Any) -> None:
        super().__init__()
        self.config = config
        self.tokenizer = tokenizer
        self.located: Located | None = None
        for name in self.encoders:
            setattr(self, name, base[name])
        self.build_heads(int(base[self.encoders[0]].config.hidden_size))  # type: ignore[union-attr, arg-type]

    def build_heads(self, width: int) -> None:
        """Create the modules and buffers that stand on encoder features of `width` dimensions."""

    @classmethod
    def create(
        cls, config: CheckpointConfig, *, lora: LoraSettings | None = None, start: str | Path | None = None
    ) -> Self:
        """A fresh network for training.

        `lora=None` leaves every weight of the encoder trainable. `start` names a checkpoint of any
        approach (with one encoder) whose adapter every encoder of this network begins from.
        """
        located = find_encoder(config.encoder.id, revision=config.encoder.revision, sha256=config.encoder.sha256)
        tokenizer = load_tokenizer(located.folder, config.layout)
        begun = None if start is None else _start_folder(start, config.encoder)
        base = {}
        for name in cls.encoders:
            encoder = load_encoder(located.folder, len(tokenizer))
            if begun is not None:
                encoder = _load_adapter(encoder, begun / "adapter", trainable=True)
            elif config.encoder.tuning == "lora" and lora is not None:
                encoder = _with_lora(encoder, lora)
            base[name] = encoder
        return cls(config, base, tokenizer)

    @classmethod
    def from_pretrained(
        cls,
        source: str | Path | None = None,
        *,
        revision: str | None = None,
        device: str | torch.device | None = None,
        dtype: str | torch.dtype = "float32",
        trainable: bool = False,
        **ignored: Any,
    ) -> Self:
        """Load a checkpoint: a folder, a Hub id, or the embedded one. Adapters are merged unless `trainable`."""
        located = find_checkpoint(source, default=cls.default_checkpoint(), revision=revision)
        check_files(located.folder)
        config = CheckpointConfig.read(located.folder)
        if config.approach != cls.approach:
            raise CheckpointError(f"{located.folder} is a checkpoint of {config.approach}, not of {cls.approach}")
        tokenizer = load_tokenizer(located.folder, config.layout)
        weights = located.folder / "model.safetensors"
        skeleton = located.folder / ENCODER_CONFIG
        stands_alone = config.encoder.tuning == "full" and skeleton.is_file()
        if stands_alone:
            # Modules without memory tell the shapes, so that nothing is allocated which the file does not hold.
            with torch.device("meta"):
                planned = {name: empty_encoder(skeleton) for name in cls.encoders}
            cls._check_shapes(config, planned, weights)
            base = {name: empty_encoder(skeleton) for name in cls.encoders}
        else:
            if located.revision is not None and Path(config.encoder.id).expanduser().exists():
                raise CheckpointError(
                    f"{source} comes from the Hub but names a folder of this machine as its encoder; do not use it"
                )
            found = find_encoder(config.encoder.id, revision=config.encoder.revision, sha256=config.encoder.sha256)
            base = {name: load_encoder(found.folder, len(tokenizer)) for name in cls.encoders}
        _check_vocabulary(tokenizer, base[cls.encoders[0]], located.folder)
        if not stands_alone:
            cls._check_shapes(config, base, weights)
        if config.encoder.tuning == "lora":
            for name in cls.encoders:
                base[name] = _load_adapter(base[name], adapter_folder(located.folder, cls.encoders, name), trainable)
        network = cls(config, base, tokenizer)
        network.located = located
        network._load_heads(weights)
        chosen = choose_device(device)
        network.to(chosen)
        precision = choose_dtype(dtype, chosen)
        for name in cls.encoders:
            encoder = getattr(network, name).to(precision)
            if config.encoder.tuning != "full" and not trainable:
                _share_embeddings(encoder, (found.folder, len(tokenizer), chosen, precision))
        return network if trainable else network.eval().requires_grad_(False)

    @classmethod
    def default_checkpoint(cls) -> str:
        """Name of the embedded checkpoint of this approach."""
        return f"{cls.approach}-minilm"

    def merged(self) -> Self:
        """A copy without adapters: the encoders as they score, so that it stands without its base encoder."""
        whole = copy.deepcopy(self)
        name = f"{self.config.name or self.approach}-merged"
        whole.config = replace(self.config, name=name, encoder=replace(self.config.encoder, tuning="full"))
        for attribute in self.encoders:
            encoder: Any = getattr(whole, attribute)
            if hasattr(encoder, "merge_and_unload"):
                setattr(whole, attribute, encoder.merge_and_unload())
        return whole

    def save_pretrained(
        self, folder: str | Path, *, card: str | None = None, merged: bool = False, **ignored: Any
    ) -> None:
        """Write the checkpoint folder; `config.json` comes last, so a half-written folder is not one."""
        if merged:
            self.merged().save_pretrained(folder, card=card)
            return
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        if self.config.encoder.tuning == "lora":
            for name in self.encoders:
                _save_adapter(getattr(self, name), adapter_folder(target, self.encoders, name))
        if self.config.encoder.tuning == "full":
            encoder: Any = getattr(self, self.encoders[0])
            _replace(target / ENCODER_CONFIG, encoder.config.to_json_file)
        _replace(target / "model.safetensors", lambda path: save_file(self._own_state(), path))
        self.tokenizer.save_pretrained(target)
        _compact(target / "tokenizer.json")
        if card is not None:
            (target / "README.md").write_text(card, encoding="utf-8")
        _replace(target / "config.json", lambda path: path.write_text(self.config.to_json(), encoding="utf-8"))

    def push_to_hub(
        self,
        repo_id: str,
        *,
        private: bool = False,
        token: str | None = None,
        commit_message: str = "Upload dialeval checkpoint",
        card: str | None = None,
    ) -> str:
        """Create the model repository if it is not there and upload the folder; returns the commit's URL."""
        import tempfile

        from huggingface_hub import HfApi

        api = HfApi(token=token)
        api.create_repo(repo_id, private=private, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(folder, card=card)
            return str(api.upload_folder(repo_id=repo_id, folder_path=folder, commit_message=commit_message))

    def round_adapters(self) -> None:
        """Round adapter weights to what will be saved, so that statistics fitted now fit what is loaded later."""
        for name, parameter in self.named_parameters():
            if "lora_" in name:
                parameter.data = parameter.data.to(torch.float16).to(parameter.dtype)

    def _own_state(self) -> dict[str, torch.Tensor]:
        """What `model.safetensors` holds: heads and statistics, and fully tuned encoders."""
        full = self.config.encoder.tuning == "full"
        prefixes = tuple(f"{name}." for name in self.encoders)
        state = self.state_dict()
        return {
            key: tensor.detach().cpu().contiguous().clone()
            for key, tensor in state.items()
            if full or not key.startswith(prefixes)
        }

    @classmethod
    def _check_shapes(cls, config: CheckpointConfig, base: Mapping[str, nn.Module], path: Path) -> None:
        """Refuse weights that do not fit the configuration, before memory is taken for them."""
        plan = cls.__new__(cls)
        nn.Module.__init__(plan)
        plan.config = config
        try:
            with torch.device("meta"):
                plan.build_heads(int(base[cls.encoders[0]].config.hidden_size))  # type: ignore[union-attr, arg-type]
        except (RuntimeError, TypeError, ValueError) as error:
            raise CheckpointError(f"{path.parent}/config.json asks for no network: {first_line(error)}") from None
        if config.encoder.tuning == "full":
            for name in cls.encoders:
                setattr(plan, name, base[name])
        expected = {key: tuple(tensor.shape) for key, tensor in plan.state_dict().items()}
        found = tensor_shapes(path)
        if found != expected:
            wrong = sorted(key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key))
            raise CheckpointError(f"{path} does not fit its config.json: {', '.join(wrong[:3])} differ in shape")

    def _load_heads(self, path: Path) -> None:
        try:
            stored = load_file(path)
        except (SafetensorError, OSError) as error:
            raise CheckpointError(f"{path} is damaged: {first_line(error)}") from None
        _check_finite(stored, path)
        self.load_state_dict(stored, strict=False)


#: Half of a small encoder is its embedding table, and adapters leave it alone: one copy serves all metrics.
_EMBEDDINGS: WeakValueDictionary[Any, nn.Module] = WeakValueDictionary()


def _share_embeddings(encoder: Any, key: Any) -> None:
    encoder.set_input_embeddings(_EMBEDDINGS.setdefault(key, encoder.get_input_embeddings()))


def _start_folder(start: str | Path, encoder: EncoderSource) -> Path:
    """The folder of a checkpoint to begin from; its adapter fits only the base encoder it was trained over."""
    folder = find_checkpoint(start, default=str(start)).folder
    check_files(folder)
    theirs = CheckpointConfig.read(folder).encoder
    if theirs.tuning != "lora":
        raise CheckpointError(f"{start} has no adapter to begin from (its encoder is {theirs.tuning}); choose another")
    known = theirs.sha256 is not None and encoder.sha256 is not None
    if theirs.sha256 != encoder.sha256 if known else theirs.id != encoder.id:
        told = [f"{one.id} ({(one.sha256 or 'no sha256')[:12]})" for one in (theirs, encoder)]
        raise CheckpointError(f"{start} was trained over {told[0]}, not over {told[1]}; begin from one over the same")
    return folder


def adapter_folder(folder: Path, encoders: tuple[str, ...], name: str) -> Path:
    """`adapter/` for one encoder, `adapter/NAME/` where an approach has several."""
    return folder / "adapter" if len(encoders) == 1 else folder / "adapter" / name


def _check_finite(stored: Mapping[str, torch.Tensor], path: Path) -> None:
    for key, tensor in stored.items():
        if not bool(torch.isfinite(tensor).all()):
            raise CheckpointError(f"{path} is damaged: {key} holds values that are no numbers; fetch it again")


def _compact(file: Path) -> None:
    """The same JSON without its indentation, a third of a vocabulary's file."""
    if file.is_file():
        told = json.loads(file.read_text(encoding="utf-8"))
        short = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
        _replace(file, lambda path: path.write_text(short, encoding="utf-8"))


def _check_vocabulary(tokenizer: Any, encoder: Any, folder: Path) -> None:
    """A token without an embedding would only be noticed in the middle of scoring."""
    known = encoder.get_input_embeddings().num_embeddings
    if (highest := max(tokenizer.get_vocab().values(), default=0)) >= known:
        raise CheckpointError(
            f"{folder} has a token {highest} where its encoder knows {known}; they do not belong together"
        )


def load_tokenizer(folder: Path, layout: PairFormat) -> Any:
    """The tokenizer of a folder; a separator such as `[SEPT]` that it does not know becomes a special token."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # a damaged tokenizer.json raises Exception itself
        raise CheckpointError(f"{folder} has no usable tokenizer: {first_line(error)}") from None
    separator = layout.separator
    if separator.strip() and separator not in tokenizer.get_vocab():
        tokenizer.add_special_tokens({"additional_special_tokens": [separator]})
    return tokenizer


def load_encoder(folder: Path, vocabulary: int) -> nn.Module:
    """An encoder in float32 with fused attention, without the pooler (approaches that pool have their own)."""
    from transformers import AutoModel
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    check_sizes(read_json(folder / "config.json"), folder / "config.json")
    try:
        encoder = AutoModel.from_pretrained(
            folder,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=torch.float32,
            attn_implementation="sdpa",
        )
    except Exception as error:  # whatever a configuration that fits no weights leads to
        raise CheckpointError(f"{folder} holds no encoder that can be loaded: {first_line(error)}") from None
    if getattr(encoder, "pooler", None) is not None:
        encoder.pooler = None
    known = encoder.get_input_embeddings().num_embeddings
    if vocabulary > known + MAX_NEW_TOKENS:
        raise CheckpointError(
            f"the tokenizer has {vocabulary} tokens and the encoder in {folder} knows {known} of them"
        )
    if vocabulary > known:
        encoder.resize_token_embeddings(vocabulary, mean_resizing=False)
        # An adapter does not store embeddings, so a new token must start from the same row every time.
        rows = encoder.get_input_embeddings().weight.data
        rows[known:] = rows[:known].mean(dim=0)
    loaded: nn.Module = encoder
    return loaded


def longest_input(config: Any) -> int:
    """Tokens that an encoder has positions for; RoBERTa's family begins counting behind its padding index."""
    positions = int(getattr(config, "max_position_embeddings", 512))
    return positions - 2 if "roberta" in str(config.model_type) else positions


#: The configuration of a fully tuned encoder; `config.json` is the checkpoint's own.
ENCODER_CONFIG = "encoder.json"


def empty_encoder(path: Path) -> nn.Module:
    """An encoder with arbitrary weights, to be filled from the checkpoint that it belongs to."""
    from transformers import AutoConfig, AutoModel

    raw = read_json(path)
    check_sizes(raw, path)
    try:
        config = AutoConfig.for_model(**raw)
        encoder: Any = AutoModel.from_config(  # type: ignore[no-untyped-call]
            config, attn_implementation="sdpa", dtype=torch.float32, trust_remote_code=False
        )
    except Exception as error:  # a configuration can be wrong in as many ways as there are models
        raise CheckpointError(f"{path} is damaged: {first_line(error)}") from None
    if getattr(encoder, "pooler", None) is not None:
        encoder.pooler = None
    empty: nn.Module = encoder
    return empty


def _with_lora(encoder: nn.Module, settings: LoraSettings) -> nn.Module:
    from peft import LoraConfig

    config = LoraConfig(
        r=settings.rank, lora_alpha=settings.alpha, lora_dropout=settings.dropout, target_modules="all-linear"
    )
    adapted: nn.Module = _with_adapter(encoder, config)
    return adapted


def _with_adapter(encoder: nn.Module, config: Any) -> Any:
    from peft import get_peft_model

    with warnings.catch_warnings():
        # PEFT asks transformers for a property under its old name, which is no news for whoever loads a metric.
        warnings.filterwarnings("ignore", message="`is_gradient_checkpointing` is deprecated")
        return get_peft_model(encoder, config)


def _load_adapter(encoder: nn.Module, folder: Path, trainable: bool) -> nn.Module:
    """PEFT's own loader would follow settings that import modules, read other files or take memory unseen."""
    from peft import LoraConfig, get_peft_model_state_dict, set_peft_model_state_dict

    weights = folder / "adapter_model.safetensors"
    if not weights.is_file():
        raise CheckpointError(f"{folder} has no adapter_model.safetensors; the checkpoint is incomplete")
    settings = adapter_settings(folder)
    try:
        adapted: Any = _with_adapter(encoder, LoraConfig(**settings))
        expected = {key: tuple(tensor.shape) for key, tensor in get_peft_model_state_dict(adapted).items()}
        if expected != tensor_shapes(weights):
            raise CheckpointError(f"{weights} does not fit the encoder that it is for; fetch both again")
        stored = load_file(weights)
        _check_finite(stored, weights)
        set_peft_model_state_dict(adapted, stored)
        merged: nn.Module = adapted if trainable else adapted.merge_and_unload()
    except CheckpointError:
        raise
    except Exception as error:
        raise CheckpointError(f"{folder} does not hold a usable adapter: {first_line(error)}") from None
    return merged


def _save_adapter(adapted: nn.Module, folder: Path) -> None:
    """Save in PEFT's format, in float16: half the size, and `round_adapters` made it exact."""
    from peft import get_peft_model_state_dict

    folder.mkdir(parents=True, exist_ok=True)
    state = get_peft_model_state_dict(adapted)
    half = {key: tensor.detach().cpu().to(torch.float16).contiguous() for key, tensor in state.items()}
    config: Any = adapted.peft_config["default"]  # type: ignore[index]
    kept, config.base_model_name_or_path = config.base_model_name_or_path, BASE_NAME_IN_CONFIG
    config.save_pretrained(str(folder))
    config.base_model_name_or_path = kept
    _replace(folder / "adapter_model.safetensors", lambda path: save_file(half, path))


#: PEFT would write the folder from which the base was loaded; the base is named in config.json.
BASE_NAME_IN_CONFIG = None


def _replace(path: Path, write: Any) -> None:
    """Write beside the target and rename, so that a reader never sees half a file."""
    with private_until_done(path, path.with_name(f".{path.name}.{os.getpid()}")) as hidden:
        write(hidden)


def current_versions() -> dict[str, str]:
    """Versions that a signature and a config record."""
    import transformers

    return {
        "dialeval": __version__,
        "torch": torch.__version__.split("+")[0],
        "transformers": transformers.__version__,
        "python": platform.python_version(),
    }


def encoder_source(encoder_id: str, tuning: Tuning, revision: str | None = None) -> EncoderSource:
    """Pin a base encoder by the digest of the weights that are at hand."""
    found = find_encoder(encoder_id, revision=revision)
    weights = found.folder / "model.safetensors"
    return EncoderSource(
        id=encoder_id,
        revision=revision or found.revision,
        sha256=file_sha256(weights) if weights.is_file() else None,
        tuning=tuning,
    )
