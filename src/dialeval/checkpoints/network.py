"""Checkpoints: one folder format for disk and Hub, safetensors and JSON only.

config.json         approach, base encoder (id, revision, sha256), layout, recipe, quantiles, versions
model.safetensors   heads and fitted statistics; the encoder too if it was fully tuned
encoder.json        the encoder's configuration, if it was fully tuned: such a checkpoint needs no base encoder
adapter/            LoRA weights in PEFT's format, if it was tuned that way
layers.safetensors  the encoder but for its embeddings, if these alone are the base's, a byte for a weight of a matrix
                    with a scale a row; it, or the adapter, may be an embedded checkpoint's
tokenizer files     if it was fully tuned; any other has the tokenizer of its base encoder
README.md           the model card
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from dialeval.checkpoints import CheckpointError, find, load
from dialeval.checkpoints.config import CheckpointConfig, EncoderSource, LoraSettings
from dialeval.checkpoints.untrusted import tensor_shapes
from dialeval.encoders.base import first_token, freeze_embeddings, load_exactly, tuned_state, width
from dialeval.encoders.batching import choose_device, choose_dtype
from dialeval.io.files import disk_errors, first_line, parse_json, replace_file


class Network(nn.Module):
    """The networks of one approach: an encoder (or several over one base) and heads.

    Sub-classes build their heads in `build_heads` and say in `rows` what one row of numbers is.
    """

    approach: ClassVar[str]
    #: Attributes that hold encoders. Each gets its own adapter over the same base weights.
    encoders: ClassVar[tuple[str, ...]] = ("encoder",)
    #: Checkpoints of an earlier format hold another network.
    oldest_format: ClassVar[int] = 1

    def __init__(self, config: CheckpointConfig, base: Mapping[str, nn.Module], tokenizer: Any) -> None:
        super().__init__()
        self.config = config
        self.tokenizer = tokenizer
        #: Name and commit, or digest, of the weights, as signatures have them.
        self.identity = ""
        self.folder: Path | None = None
        for name in self.encoders:
            setattr(self, name, base[name])
        self.build_heads(width(base[self.encoders[0]]))

    def build_heads(self, width: int) -> None:
        """Create the modules and buffers that stand on encoder features of `width` dimensions."""

    @property
    def encoder_id(self) -> str:
        """Networks of one name have one encoder: the digest's of an adapter or of layers, or a checkpoint's own."""
        source = self.config.encoder
        if self.folder is None or source.tuning not in ("lora", "layers") or len(self.encoders) > 1:
            return str(self.folder)
        return f"{source.id} {source.sha256} {source.layers or find.file_sha256(self.folder / find.ADAPTER)}"

    def rows(self, first: Tensor) -> Tensor:
        """What the heads make of the first token's last state: `[batch, width]` becomes one row of numbers for each."""
        raise NotImplementedError

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """One row of numbers for each input."""
        return self.rows(first_token(self.encoder, input_ids, attention_mask, token_type_ids))

    @classmethod
    def create(
        cls, config: CheckpointConfig, *, lora: LoraSettings | None = None, start: str | Path | None = None
    ) -> Self:
        """A fresh network for training.

        `lora=None` leaves every weight of the encoder trainable. `start` names a checkpoint of any
        approach (with one encoder) whose adapter or layers every encoder of this network begins from.
        """
        folder = base_of(config.encoder)
        tokenizer = load.load_tokenizer(folder, config.layout)
        begun = None if start is None else _start_folder(start, config.encoder)
        base = {}
        for name in cls.encoders:
            encoder = load.load_encoder(folder, len(tokenizer), trainable=True)
            if config.encoder.tuning == "layers":
                freeze_embeddings(encoder)
            if begun is not None and begun[1].tuning == "layers":
                encoder = load.load_layers(encoder, find.find_tuned(begun[0], begun[1].layers))
            elif begun is not None:
                encoder = load.load_adapter(encoder, _adapter(*begun), trainable=True)
            elif config.encoder.tuning == "lora" and lora is not None:
                encoder = load.with_lora(encoder, lora)
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
        located = find.find_checkpoint(source, default=cls.default_checkpoint(), revision=revision)
        config = CheckpointConfig.read(located.folder)
        if config.approach != cls.approach:
            raise CheckpointError(f"{located.folder} is a checkpoint of {config.approach}, not of {cls.approach}")
        if config.format_version < cls.oldest_format:
            raise CheckpointError(
                f"{located.folder} has format {config.format_version}, and a {cls.approach} needs {cls.oldest_format}; "
                "train or tune it again, from the embedded one"
            )
        tokenizer = load.load_tokenizer(tokenizer_folder(located.folder, config.encoder), config.layout)
        weights = located.folder / "model.safetensors"
        skeleton = located.folder / load.ENCODER_CONFIG
        stands_alone = config.encoder.tuning == "full" and skeleton.is_file()
        if stands_alone:
            # Modules without memory tell the shapes, so that nothing is allocated which the file does not hold.
            with torch.device("meta"):
                planned = {name: load.empty_encoder(skeleton, trainable=trainable) for name in cls.encoders}
            cls._check_shapes(config, planned, weights)
            base = {name: load.empty_encoder(skeleton, trainable=trainable) for name in cls.encoders}
        else:
            if located.revision is not None and Path(config.encoder.id).expanduser().exists():
                raise CheckpointError(
                    f"{source} comes from the Hub but names a folder of this machine as its encoder; do not use it"
                )
            base_folder = base_of(config.encoder)
            base = {name: load.load_encoder(base_folder, len(tokenizer), trainable=trainable) for name in cls.encoders}
        load.check_vocabulary(tokenizer, base[cls.encoders[0]], located.folder)
        if not stands_alone:
            cls._check_shapes(config, base, weights)
        if config.encoder.tuning == "lora":
            for name in cls.encoders:
                adapter = _adapter(located.folder, config.encoder, cls.encoders, name)
                base[name] = load.load_adapter(base[name], adapter, trainable)
        elif config.encoder.tuning == "layers":
            layers = find.find_tuned(located.folder, config.encoder.layers)
            base = {name: load.load_layers(encoder, layers) for name, encoder in base.items()}
            for encoder in base.values():
                freeze_embeddings(encoder)  # which stay those of the base
        network = cls(config, base, tokenizer)
        name = config.name or located.folder.name
        commit = located.revision or find.weights_digest(located.folder, config.encoder.layers)[:12]
        network.identity = f"{name}@{commit}"
        network.folder = located.folder
        network._load_heads(weights)
        # A metric comes with both chosen already.
        chosen = device if isinstance(device, torch.device) else choose_device(device)
        network.to(chosen)
        precision = dtype if isinstance(dtype, torch.dtype) else choose_dtype(dtype, chosen)
        for name in cls.encoders:
            encoder = getattr(network, name).to(precision)
            if config.encoder.tuning != "full" and not trainable:
                load.share_embeddings(encoder, (base_folder, len(tokenizer), chosen, precision))
        return network if trainable else network.eval().requires_grad_(False)

    @classmethod
    def default_checkpoint(cls) -> str:
        """The checkpoint that is used if none is named: the catalogue's that bears the name of the approach."""
        return cls.approach

    def merged(self) -> Self:
        """A copy without adapters: the encoders as they score, so that it stands without its base encoder."""
        whole = copy.deepcopy(self)
        name = f"{self.config.name or self.approach}-merged"
        whole.config = replace(self.config, name=name, encoder=replace(self.config.encoder, tuning="full", layers=None))
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
        with disk_errors(target):
            self._write(target, card)

    def _write(self, target: Path, card: str | None) -> None:
        tuned: Any = getattr(self, self.encoders[0])
        if self.config.encoder.tuning == "lora":
            for name in self.encoders:
                save_adapter(getattr(self, name), load.adapter_folder(target, self.encoders, name))
        if self.config.encoder.tuning == "layers":
            replace_file(target / find.LAYERS, lambda path: save_file(load.packed(tuned_state(tuned)), path))
        if (shared := find.SHARED.get(self.config.encoder.tuning)) and len(self.encoders) == 1:
            source = replace(self.config.encoder, layers=find.file_sha256(target / shared))
            self.config = replace(self.config, encoder=source)
        if self.config.encoder.tuning == "full":
            replace_file(target / load.ENCODER_CONFIG, tuned.config.to_json_file)
        replace_file(target / "model.safetensors", lambda path: save_file(self._own_state(), path))
        if self.config.encoder.tuning == "full":
            self.tokenizer.save_pretrained(target)
            compact(target / "tokenizer.json")
        if card is not None:
            (target / "README.md").write_text(card, encoding="utf-8")
        replace_file(target / "config.json", lambda path: path.write_text(self.config.to_json(), encoding="utf-8"))

    def round_tuned(self) -> None:
        """Round tuned weights to what will be saved, so that statistics fitted now fit what is loaded later."""
        if self.config.encoder.tuning == "layers":
            tuned: Any = self.encoder
            load_exactly(tuned, load.unpacked(load.packed(tuned_state(tuned))), kept="embeddings.")
        for name, parameter in self.named_parameters():
            if "lora_" in name:
                parameter.data = parameter.data.to(torch.float16).to(parameter.dtype)

    def _own_state(self) -> dict[str, torch.Tensor]:
        """What `model.safetensors` holds: heads and statistics, and fully tuned encoders."""
        kept = self._from_elsewhere()
        return {
            key: tensor.detach().cpu().contiguous().clone()
            for key, tensor in self.state_dict().items()
            if not key.startswith(kept)
        }

    def _from_elsewhere(self) -> tuple[str, ...]:
        """How the names begin of what `model.safetensors` does not hold: encoders, unless they are fully tuned."""
        return () if self.config.encoder.tuning == "full" else tuple(f"{name}." for name in self.encoders)

    @classmethod
    def _check_shapes(cls, config: CheckpointConfig, base: Mapping[str, nn.Module], path: Path) -> None:
        """Refuse weights that do not fit the configuration, before memory is taken for them."""
        try:
            with torch.device("meta"):
                plan = cls(config, base, None)
        except (RuntimeError, TypeError, ValueError) as error:
            raise CheckpointError(f"{path.parent}/config.json asks for no network: {first_line(error)}") from None
        kept = plan._from_elsewhere()
        planned = {key: tensor for key, tensor in plan.state_dict().items() if not key.startswith(kept)}
        expected = {key: tuple(tensor.shape) for key, tensor in planned.items()}
        stored = tensor_shapes(path, counts=[key for key, tensor in planned.items() if not tensor.is_floating_point()])
        if stored != expected:
            wrong = sorted(key for key in stored.keys() | expected.keys() if stored.get(key) != expected.get(key))
            raise CheckpointError(f"{path} does not fit its config.json: {', '.join(wrong[:3])} differ in shape")

    def _load_heads(self, path: Path) -> None:
        try:
            stored = load_file(path)
        except (SafetensorError, OSError) as error:
            raise CheckpointError(f"{path} is damaged: {first_line(error)}") from None
        load.check_finite(stored, path)
        load_exactly(self, stored, kept=self._from_elsewhere())


def unit_matrix(rows: int, columns: int | None = None) -> torch.Tensor:
    """`torch.eye`, which without memory (see `_check_shapes`) has torch import its compiler, a second's work."""
    return torch.zeros(rows, columns or rows).fill_diagonal_(1.0)


#: Checkpoints with adapters that were published earlier carry these.
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt")


def tokenizer_folder(folder: Path, source: EncoderSource) -> Path:
    """Where the tokenizer of a checkpoint lies: in its own folder if there are files of one, else with its encoder."""
    has_files = source.tuning == "lora" and any((folder / name).is_file() for name in TOKENIZER_FILES)
    return folder if source.tuning == "full" or has_files else base_of(source)


def base_of(source: EncoderSource) -> Path:
    """The folder of a base encoder, of which the weights are those of its digest."""
    return find.find_encoder(source.id, revision=source.revision, sha256=source.sha256).folder


def _adapter(folder: Path, source: EncoderSource, encoders: tuple[str, ...] = ("encoder",), name: str = "") -> Path:
    """The folder of an adapter: the checkpoint's own, or an embedded one's whose digest its config.json names."""
    if source.layers is None:
        return load.adapter_folder(folder, encoders, name)
    return find.find_tuned(folder, source.layers, find.ADAPTER).parent


def _start_folder(start: str | Path, encoder: EncoderSource) -> tuple[Path, EncoderSource]:
    """A checkpoint to begin from and its encoder; what is tuned fits only the base that it was trained over."""
    folder = find.find_checkpoint(start, default=str(start)).folder
    theirs = CheckpointConfig.read(folder).encoder
    if theirs.tuning not in ("lora", "layers"):
        raise CheckpointError(
            f"{start} has neither adapter nor layers to begin from (its encoder is {theirs.tuning}); choose another"
        )
    known = theirs.sha256 is not None and encoder.sha256 is not None
    if theirs.sha256 != encoder.sha256 if known else theirs.id != encoder.id:
        encoders = [f"{source.id} ({(source.sha256 or 'no sha256')[:12]})" for source in (theirs, encoder)]
        raise CheckpointError(
            f"{start} was trained over {encoders[0]}, not over {encoders[1]}; begin from one over the same"
        )
    return folder, theirs


def compact(file: Path) -> None:
    """The same JSON without its indentation, a third of a vocabulary's file."""
    if file.is_file():
        content = parse_json(file.read_text(encoding="utf-8"))
        short = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        replace_file(file, lambda path: path.write_text(short, encoding="utf-8"))


def save_adapter(adapted: nn.Module, folder: Path) -> None:
    """Save in PEFT's format, in float16: half the size, and `round_tuned` made it exact."""
    from peft import get_peft_model_state_dict

    folder.mkdir(parents=True, exist_ok=True)
    state = get_peft_model_state_dict(adapted)
    half = {key: tensor.detach().cpu().to(torch.float16).contiguous() for key, tensor in state.items()}
    config: Any = adapted.peft_config["default"]  # type: ignore[index]
    # PEFT would write the folder from which the base was loaded; the base is named in config.json.
    kept, config.base_model_name_or_path = config.base_model_name_or_path, None
    config.save_pretrained(str(folder))
    config.base_model_name_or_path = kept
    replace_file(folder / "adapter_model.safetensors", lambda path: save_file(half, path))
