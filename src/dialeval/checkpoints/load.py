"""Tokenizers, encoders and adapters from the files of a folder, each checked before it is believed."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import nn

from dialeval.checkpoints import untrusted
from dialeval.checkpoints.config import LoraSettings
from dialeval.checkpoints.find import CheckpointError, first_line
from dialeval.encoders.base import load_exactly, tuned_state
from dialeval.encoders.bert import BertEncoder, BertSettings
from dialeval.encoders.layout import PairFormat

#: Half of a small encoder is its embedding table, and adapters leave it alone: one copy serves all metrics.
_EMBEDDINGS: WeakValueDictionary[Any, nn.Module] = WeakValueDictionary()


def share_embeddings(encoder: Any, key: Any) -> None:
    """Use the embedding table that another encoder of the same key already holds."""
    encoder.set_input_embeddings(_EMBEDDINGS.setdefault(key, encoder.get_input_embeddings()))


def adapter_folder(folder: Path, encoders: tuple[str, ...], name: str) -> Path:
    """`adapter/` for one encoder, `adapter/NAME/` where an approach has several."""
    return folder / "adapter" if len(encoders) == 1 else folder / "adapter" / name


def check_finite(stored: Mapping[str, torch.Tensor], path: Path) -> None:
    """Refuse weights that are no numbers."""
    for key, tensor in stored.items():
        if not bool(torch.isfinite(tensor).all()):
            raise CheckpointError(f"{path} is damaged: {key} holds values that are no numbers; fetch it again")


def check_vocabulary(tokenizer: Any, encoder: Any, folder: Path) -> None:
    """A token without an embedding would only be noticed in the middle of scoring."""
    known = encoder.get_input_embeddings().num_embeddings
    if (highest := max(tokenizer.get_vocab().values(), default=0)) >= known:
        raise CheckpointError(
            f"{folder} has a token {highest} where its encoder knows {known}; they do not belong together"
        )


def read_tokenizer(folder: Path) -> Any:
    """The tokenizer of a folder."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except BaseException as error:  # a damaged tokenizer.json raises Exception itself, and panics are no Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise CheckpointError(f"{folder} has no usable tokenizer: {first_line(error)}") from None
    # Where its files are missing transformers makes one of nothing, to which every word is unknown.
    if tokenizer.get_vocab().keys() <= set(tokenizer.all_special_tokens):
        raise CheckpointError(f"{folder} has no usable tokenizer: it knows no word; fetch its files again")
    return tokenizer


def load_tokenizer(folder: Path, layout: PairFormat) -> Any:
    """The same, to which a separator such as `[SEPT]` that it does not know is added as a special token."""
    tokenizer = read_tokenizer(folder)
    separator = layout.separator
    if separator.strip() and separator not in tokenizer.get_vocab():
        tokenizer.add_special_tokens({"additional_special_tokens": [separator]})
    return tokenizer


def load_encoder(folder: Path, vocabulary: int, *, trainable: bool = False) -> nn.Module:
    """An encoder in float32 with fused attention, without the pooler (approaches that pool have their own).

    For scoring an ordinary BERT loads without transformers' model classes, whose import takes longer than all else.
    """
    untrusted.check_files(folder)
    raw = untrusted.encoder_settings(folder / "config.json")
    encoder: Any = (None if trainable else _ordinary_bert(folder, raw)) or _of_transformers(folder, raw)
    known = encoder.get_input_embeddings().num_embeddings
    if vocabulary > known + untrusted.MAX_NEW_TOKENS:
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


def _ordinary_bert(folder: Path, raw: Mapping[str, Any]) -> BertEncoder | None:
    """The encoder of a folder that holds an ordinary BERT, every tensor of it, in one file; None of any other."""
    settings, weights = BertSettings.of(raw), folder / "model.safetensors"
    if settings is None or not weights.is_file():
        return None
    with torch.device("meta"):
        encoder = BertEncoder(settings)
    # Releases with heads put the encoder's name before its tensors.
    shapes = untrusted.tensor_shapes(weights, with_buffers=True)
    held = {name.removeprefix("bert."): name for name in shapes}
    asked = {name: tuple(tensor.shape) for name, tensor in encoder.state_dict().items()}
    if any(shapes.get(held.get(name, "")) != shape for name, shape in asked.items()):
        return None
    with safe_open(weights, framework="pt") as stored:
        encoder.load_state_dict({name: stored.get_tensor(held[name]).float() for name in asked}, assign=True)
    return encoder


def _of_transformers(folder: Path, raw: dict[str, Any]) -> Any:
    from transformers import AutoModel
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    _check_fits(folder, raw)
    try:
        encoder, report = AutoModel.from_pretrained(
            folder,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
        )
    except Exception as error:  # whatever a configuration that fits no weights leads to
        raise CheckpointError(f"{folder} holds no encoder that can be loaded: {first_line(error)}") from None
    # What a file lacks would be drawn by chance. The pooler is not used; approaches that pool have their own.
    if missing := sorted(key for key in report["missing_keys"] if not key.startswith("pooler.")):
        raise CheckpointError(f"{folder} lacks {len(missing)} of its encoder's tensors, {missing[0]} for one")
    return _without_pooler(encoder)


#: The families of encoders that text is judged with; others may hide their sizes in settings of their own.
FAMILIES = frozenset(
    "albert bert camembert deberta deberta-v2 distilbert electra ernie modernbert mpnet roberta xlm-roberta".split()
)


def _of_config(raw: dict[str, Any], path: Path, device: Any = "meta") -> Any:
    """The encoder that a configuration asks for; unless a device is named, in modules without memory."""
    from transformers import AutoConfig, AutoModel

    if str(raw.get("model_type")) not in FAMILIES:
        raise CheckpointError(
            f"{path} is of the kind {str(raw.get('model_type'))[:40]!r}; encoders are {', '.join(sorted(FAMILIES))}"
        )
    try:
        with torch.device(device):
            return AutoModel.from_config(  # type: ignore[no-untyped-call]
                AutoConfig.for_model(**raw), dtype=torch.float32, trust_remote_code=False
            )
    except Exception as error:  # a configuration can be wrong in as many ways as there are models
        raise CheckpointError(f"{path} is damaged: {first_line(error)}") from None


def _check_fits(folder: Path, raw: dict[str, Any]) -> None:
    """Refuse a configuration that asks for more memory than its weights fill, before any is taken."""
    planned = _of_config(raw, folder / "config.json").named_parameters()
    asked = sum(math.prod(parameter.shape) for name, parameter in planned if "pooler" not in name)
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise CheckpointError(f"{folder} has no model.safetensors; pickled weights are not loaded")
    shapes = [shape for file in files for shape in untrusted.tensor_shapes(file, with_buffers=True).values()]
    held = sum(map(math.prod, shapes))
    if asked > held:
        raise CheckpointError(f"{folder} asks for {asked} weights in config.json and holds {held}; fetch it again")


#: The configuration of a fully tuned encoder; `config.json` is the checkpoint's own.
ENCODER_CONFIG = "encoder.json"


def empty_encoder(path: Path, *, trainable: bool = False) -> nn.Module:
    """An encoder with arbitrary weights, to be filled from the checkpoint that it belongs to."""
    raw = untrusted.encoder_settings(path)
    device = torch.get_default_device()  # that which only plans, if the caller chose it
    if not trainable and (settings := BertSettings.of(raw)) is not None:
        with torch.device("meta"):
            ordinary = BertEncoder(settings)
        return ordinary.to_empty(device=device)
    return _without_pooler(_of_config(raw, path, device))


def _without_pooler(encoder: Any) -> nn.Module:
    if getattr(encoder, "pooler", None) is not None:
        encoder.pooler = None
    empty: nn.Module = encoder
    return empty


#: Beside a matrix of whole numbers from -127 to 127: what each row is to be multiplied by.
_SCALE = "_scale"
_STEPS = 127


def packed(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Tensors as they are stored: matrices in one byte a weight, with a scale a row, all others in float16."""
    stored = {}
    for name, tensor in tensors.items():
        held = tensor.detach().float().cpu()
        if held.ndim == 2:
            # With twelve bits a scale times 127 is exact, so what was read is stored again as it was.
            mantissa, exponent = torch.frexp(held.abs().amax(dim=1, keepdim=True) / _STEPS)
            scale = torch.ldexp((mantissa * 4096).round() / 4096, exponent)
            steps = (held / scale.clamp(min=1e-30)).round().clamp(-_STEPS, _STEPS)
            stored[name], stored[name + _SCALE] = steps.to(torch.int8), scale
        else:
            stored[name] = held.half().contiguous()
    return stored


def unpacked(stored: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors of `packed`, in float32."""
    return {
        name: tensor.float() * stored[name + _SCALE] if name + _SCALE in stored else tensor.float()
        for name, tensor in stored.items()
        if not name.endswith(_SCALE)
    }


def load_layers(encoder: nn.Module, path: Path) -> nn.Module:
    """The encoder with the layers of a checkpoint in place of its own."""
    asked = {name: tuple(tensor.shape) for name, tensor in tuned_state(encoder).items()}
    matrices = [name for name, shape in asked.items() if len(shape) == 2]
    scales = {name + _SCALE: (asked[name][0], 1) for name in matrices}
    load_exactly(encoder, unpacked(_fitting(path, asked | scales, counts=matrices)), kept="embeddings.")
    return encoder


def _fitting(path: Path, shapes: Mapping[str, Any], counts: Collection[str] = ()) -> dict[str, torch.Tensor]:
    """The tensors of a file that has all of these shapes and no other."""
    if untrusted.tensor_shapes(path, counts=counts) != shapes:
        raise CheckpointError(f"{path} does not fit the encoder that it is for; fetch both again")
    stored = load_file(path)
    check_finite(stored, path)
    return stored


def with_lora(encoder: nn.Module, settings: LoraSettings) -> nn.Module:
    """The encoder with fresh adapters on all its linear layers."""
    from peft import LoraConfig

    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        use_rslora=settings.rslora,
        target_modules="all-linear",
    )
    adapted: nn.Module = _with_adapter(encoder, config)
    return adapted


def _with_adapter(encoder: nn.Module, config: Any) -> Any:
    from peft import get_peft_model

    with warnings.catch_warnings():
        # PEFT asks transformers for a property under its old name, which is no news for whoever loads a metric.
        warnings.filterwarnings("ignore", message="`is_gradient_checkpointing` is deprecated")
        return get_peft_model(encoder, config)


def load_adapter(encoder: nn.Module, folder: Path, trainable: bool) -> nn.Module:
    """PEFT's own loader would follow settings that import modules, read other files or take memory unseen.

    An adapter that is only to be merged is added to the weights without PEFT, which takes long to import.
    """
    weights = folder / "adapter_model.safetensors"
    if not weights.is_file():
        raise CheckpointError(f"{folder} has no adapter_model.safetensors; the checkpoint is incomplete")
    settings = untrusted.adapter_settings(folder)
    if not trainable and (adapted := _plain_linears(encoder, settings["target_modules"])):
        return _merged(encoder, adapted, weights, settings)
    from peft import LoraConfig, get_peft_model_state_dict, set_peft_model_state_dict

    try:
        wrapped: Any = _with_adapter(encoder, LoraConfig(**settings))
        shapes = {key: tuple(tensor.shape) for key, tensor in get_peft_model_state_dict(wrapped).items()}
        set_peft_model_state_dict(wrapped, _fitting(weights, shapes))
        merged: nn.Module = wrapped if trainable else wrapped.merge_and_unload()
    except CheckpointError:
        raise
    except Exception as error:
        raise CheckpointError(f"{folder} does not hold a usable adapter: {first_line(error)}") from None
    return merged


def _plain_linears(encoder: nn.Module, names: list[str]) -> dict[str, nn.Linear] | None:
    """The layers that PEFT would adapt by these names, if all of them are plain linear ones."""
    named = {
        path: module
        for path, module in encoder.named_modules()
        if any(path == name or path.endswith(f".{name}") for name in names)
    }
    plain = {path: module for path, module in named.items() if type(module) is nn.Linear}
    return plain if len(plain) == len(named) else None


def _merged(encoder: nn.Module, layers: Mapping[str, nn.Linear], path: Path, settings: Mapping[str, Any]) -> nn.Module:
    """The encoder with an adapter added to its weights, to the last bit as PEFT does it."""
    rank, alpha = settings["r"], settings["lora_alpha"]
    scaling = alpha / math.sqrt(rank) if settings["use_rslora"] else alpha / rank
    shapes = {_lora(name, "A"): (rank, layer.in_features) for name, layer in layers.items()}
    shapes |= {_lora(name, "B"): (layer.out_features, rank) for name, layer in layers.items()}
    stored = _fitting(path, shapes)
    for name, layer in layers.items():
        inward, outward = stored[_lora(name, "A")].float(), stored[_lora(name, "B")].float()
        layer.weight.data += (outward @ inward) * scaling
    return encoder


def _lora(name: str, side: str) -> str:
    return f"base_model.model.{name}.lora_{side}.weight"
