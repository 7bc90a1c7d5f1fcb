"""Source quantization: torchao's schemes for linear layers and embeddings, without the weights.

A scheme changes the graph by the shapes and dtypes of the weights alone. So an export quantizes
layers that have no values (torchao runs on the meta device), and a lowering quantizes each weight
of the checkpoint when it binds it. Both go through `torchao.quantization.quantize_`, so values,
scales and zero points are torchao's own.

Parts of a quantized weight are parameters named
`LAYER.parametrizations.weight.originalN` (`torchao.utils.unwrap_tensor_subclass`): int8 values
(rows, columns), scales (rows, groups) and int8 zero points (rows, groups).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from rules_executorch.common.errors import UserError
from rules_executorch.export.choices import EMBEDDING_SCHEMES, OTHER_SCHEMES, SCHEMES, Scheme
from rules_executorch.export.signature import QuantizedWeight

if TYPE_CHECKING:
    from torchao.core.config import AOBaseConfig

    from rules_executorch.export.options import Quantization

_SHOWN = 4
"""How many layers an error names."""


def check_scheme(quantization: Quantization) -> None:
    """Refuses schemes that do not exist.

    Raises:
        UserError: names those that do, or there is none at all.
    """
    if quantization.scheme is None and quantization.embedding is None:
        raise UserError(
            "quantization has neither a scheme of linear layers nor one of embeddings.",
            instead=f'Write quantization = "{next(iter(SCHEMES))}", or leave it out.',
        )
    for option, given, known in (
        ("quantization", quantization.scheme, SCHEMES),
        ("quantization_embedding", quantization.embedding, EMBEDDING_SCHEMES),
    ):
        if given in OTHER_SCHEMES:
            raise UserError(
                f'{option} = "{given}" {OTHER_SCHEMES[given]}.',
                instead=f'Write {option} = "4w" for the backend mlx, which has the same devices.',
            )
        if given is not None and given not in known:
            raise UserError(
                f'{option} = "{given}" is not a scheme.',
                instead=f"Write one of {', '.join(known)}.",
            )


def _config(scheme: Scheme, group_size: int | None) -> AOBaseConfig:
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, IntxWeightOnlyConfig
    from torchao.quantization.granularity import PerAxis, PerGroup

    dtype = {4: torch.int4, 8: torch.int8}[scheme.bits]
    granularity = PerGroup(group_size) if group_size is not None else PerAxis(0)
    if scheme.dynamic:
        return Int8DynamicActivationIntxWeightConfig(
            weight_dtype=dtype, weight_granularity=granularity
        )
    return IntxWeightOnlyConfig(weight_dtype=dtype, granularity=granularity)


def _quantized(
    weight: torch.Tensor, scheme: Scheme, group_size: int | None, embedding: bool
) -> torch.Tensor:
    """torchao's tensor for a weight, on the weight's own device."""
    from torchao.quantization import quantize_

    rows, columns = weight.shape
    if embedding:
        layer = torch.nn.Embedding(rows, columns, device="meta")
    else:
        layer = torch.nn.Linear(columns, rows, bias=False, device="meta")
    layer.weight = torch.nn.Parameter(weight, requires_grad=False)
    quantize_(layer, _config(scheme, group_size), filter_fn=lambda module, name: True)
    return layer.weight


def _without_values(weight: torch.Tensor, *how: Any) -> torch.nn.Parameter:
    """A quantized weight of which only shapes and dtypes are real."""
    meta = _quantized(torch.empty_like(weight, device="meta"), *how)
    names, context = meta.__tensor_flatten__()
    parts = {name: torch.empty_like(getattr(meta, name), device="cpu") for name in names}
    tensor = type(meta).__tensor_unflatten__(parts, context, weight.shape, weight.stride())
    return torch.nn.Parameter(tensor, requires_grad=False)


def quantize_model(model: torch.nn.Module, quantization: Quantization) -> list[QuantizedWeight]:
    """Replaces the weights of a model that has no values by quantized ones that have none.

    With a `scheme` every linear layer is quantized, with `embedding` every embedding. A layer that
    shared its weight with another gets one of its own: quantizing one never changes the other.

    Args:
        model: from `build_model`; changed in place. Uninitialized memory must stay so.
        quantization: the scheme.

    Returns:
        What was quantized, in the model's order.

    Raises:
        UserError: the scheme does not exist, or its groups do not divide a layer's width and
            skipping is not allowed.
    """
    from torchao.utils import unwrap_tensor_subclass

    check_scheme(quantization)
    planned, skipped = _plan(model, quantization)
    if skipped and not quantization.allow_skipped:
        raise _does_not_divide(skipped, quantization.group_size)
    if not planned:
        raise UserError(
            f'The scheme "{quantization.scheme or quantization.embedding}" fits none of the '
            "model's layers.",
            instead="Write a smaller group size, or leave quantization out.",
        )
    found = []
    for name, module, scheme, group_size, embedding in planned:
        shape = tuple(module.weight.shape)
        module.weight = _without_values(module.weight, scheme, group_size, embedding)
        count = len(module.weight.__tensor_flatten__()[0])
        parts = tuple(f"{name}.parametrizations.weight.original{i}" for i in range(count))
        found.append(
            QuantizedWeight(f"{name}.weight", shape, scheme.name, group_size, embedding, parts)
        )
    unwrap_tensor_subclass(model)
    return found


def skipped_layers(model: torch.nn.Module, quantization: Quantization) -> dict[str, int]:
    """Names and widths of the layers that the scheme's groups do not divide.

    Args:
        model: before it is quantized.
        quantization: the scheme.
    """
    return _plan(model, quantization)[1]


def _plan(
    model: torch.nn.Module, quantization: Quantization
) -> tuple[list[tuple[str, torch.nn.Module, Scheme, int | None, bool]], dict[str, int]]:
    planned, skipped = [], {}
    linear = SCHEMES.get(quantization.scheme or "")
    of_embeddings = EMBEDDING_SCHEMES.get(quantization.embedding or "")
    for name, module in model.named_modules():
        embedding = isinstance(module, torch.nn.Embedding)
        scheme = of_embeddings if embedding else linear
        if scheme is None or not (embedding or isinstance(module, torch.nn.Linear)):
            continue
        width = module.weight.shape[1]
        group_size = quantization.group_size if scheme.grouped else None
        if group_size is not None and width % group_size:
            skipped[name] = width
        else:
            planned.append((name, module, scheme, group_size, embedding))
    return planned, skipped


def _does_not_divide(skipped: Mapping[str, int], group_size: int) -> UserError:
    widths = sorted(set(skipped.values()))
    shown = ", ".join(f"{name} ({width} wide)" for name, width in list(skipped.items())[:_SHOWN])
    more = f" and {len(skipped) - _SHOWN} more" if len(skipped) > _SHOWN else ""
    fitting = [
        size for size in range(8, min(widths) + 1, 8) if all(width % size == 0 for width in widths)
    ] or [size for size in range(2, min(widths) + 1) if all(w % size == 0 for w in widths)]
    fits = (
        f"quantization_group_size = one of {', '.join(map(str, fitting))}"
        if fitting
        else "a scheme without groups"
    )
    return UserError(
        f"Groups of {group_size} weights do not divide {len(skipped)} layers: {shown}{more}. They "
        "would stay as they are.",
        instead=f"Write {fits}, or quantization_allow_skipped = True if that is what you want.",
    )


def quantize_weight(weight: torch.Tensor, how: QuantizedWeight) -> list[torch.Tensor]:
    """Quantizes one weight of a checkpoint.

    Args:
        weight: floating point, (rows, columns).
        how: as the signature holds it.

    Returns:
        The parts, in the order of their names.
    """
    tensor = _quantized(weight, SCHEMES[how.scheme], how.group_size, how.embedding)
    return [getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]]


def dequantized_weight(weight: torch.Tensor, how: QuantizedWeight) -> torch.Tensor:
    """What a weight is worth once it is quantized: same shape and dtype as `weight`."""
    tensor = _quantized(weight, SCHEMES[how.scheme], how.group_size, how.embedding)
    return tensor.dequantize().to(weight.dtype)
