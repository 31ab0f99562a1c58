"""Low-rank adapters that train faster on a CPU, to the same values.

PEFT's layers turn their input to float32 and back, and scale and add the update in passes of their own over memory.
Here the update goes into the product that is there already, forth and back, and fixed weights are turned to bfloat16
once.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


def quicken_adapters(encoder: nn.Module) -> int:
    """From now on this encoder's plain LoRA layers compute in one pass; tells how many there are.

    Layers with dropout, several adapters or variants of LoRA stay as they are. No weight is touched.
    """
    from peft.tuners.lora.layer import Linear

    found: list[Any] = [module for module in encoder.modules() if type(module) is Linear and _is_plain(module)]
    for layer in found:
        layer.__class__ = _quick(Linear)
    return len(found)


def _is_plain(layer: Any) -> bool:
    if list(layer.lora_A) != ["default"] or layer.active_adapters != ["default"]:
        return False
    dropout, base = layer.lora_dropout["default"], layer.base_layer
    without = isinstance(dropout, nn.Identity) or getattr(dropout, "p", 1.0) == 0.0
    fixed = type(base) is nn.Linear and base.bias is not None and not base.weight.requires_grad
    # DoRA and the like; older PEFT says it otherwise.
    varied = getattr(layer, "lora_variant", None) or any(getattr(layer, "use_dora", {}).values())
    return without and fixed and not varied and layer.lora_B["default"].bias is None


@cache
def _quick(kind: Any) -> type[nn.Module]:
    def forward(layer: Any, x: Tensor, *arguments: Any, **options: Any) -> Any:
        if arguments or options or layer.merged or layer.disable_adapters:
            return kind.forward(layer, x, *arguments, **options)
        inward, outward = layer.lora_A["default"].weight, layer.lora_B["default"].weight
        weight, bias, scaling = layer.base_layer.weight, layer.base_layer.bias, layer.scaling["default"]
        device = x.device.type
        if not torch.is_autocast_enabled(device):
            return _adapted(x, weight, bias, inward, outward, scaling)
        dtype = torch.get_autocast_dtype(device)
        fixed = _turned(layer, weight, bias, dtype)
        with torch.autocast(device, enabled=False):
            return _adapted(x.to(dtype), *fixed, inward.to(dtype), outward.to(dtype), scaling)

    return type(f"Quick{kind.__name__}", (kind,), {"forward": forward})


def _turned(layer: Any, weight: Tensor, bias: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The fixed weights in another precision, made anew where they have moved or changed."""
    now = (weight.data_ptr(), weight._version, weight.device, dtype)
    made_from, turned = layer.__dict__.get("_turned", (None, None))
    if made_from != now:
        turned = weight.detach().to(dtype), bias.detach().to(dtype)
        layer.__dict__["_turned"] = now, turned
    found: tuple[Tensor, Tensor] = turned
    return found


class _Adapted(torch.autograd.Function):
    """`x Wᵀ + b + s · x Aᵀ Bᵀ`; W and b are fixed."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, inward: Tensor, outward: Tensor, scaling: float
    ) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        narrow = rows @ inward.t()
        output = torch.addmm(bias, rows, weight.t()).addmm_(narrow, outward.t(), alpha=scaling)
        ctx.save_for_backward(rows, narrow, weight, inward, outward)
        ctx.scaling = scaling
        return output.view(*x.shape[:-1], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows, narrow, weight, inward, outward = ctx.saved_tensors
        flat = gradient.reshape(-1, gradient.shape[-1])
        of_narrow = (flat @ outward).mul_(ctx.scaling)
        of_x = None
        if ctx.needs_input_grad[0]:
            of_x = (flat @ weight).addmm_(of_narrow, inward).view(*gradient.shape[:-1], -1)
        return of_x, None, None, of_narrow.t() @ rows, (flat.t() @ narrow).mul_(ctx.scaling), None


_adapted: Any = _Adapted.apply
