"""Checkpoints that were quantized by `compressed-tensors` (llm-compressor): floating point again.

A weight is dequantized when it is asked for, one tensor at a time. What a layer with a
weight of (rows, columns) stores, by the library's own code
(https://github.com/vllm-project/compressed-tensors, `compressors`):

- `pack-quantized`: `weight_packed`, int32 (rows, columns * bits / 32, rounded up), in which element
  i of a word is in bits i * `bits` and up, plus 2^(bits-1); `weight_shape`, integers (2,);
- `int-quantized` and `naive-quantized`: `weight`, int8 (rows, columns);
- `float-quantized` and `naive-quantized`: `weight`, float8_e4m3fn (rows, columns);
- each: `weight_scale`: one value for a tensor, (rows, 1) for channels, (rows, groups) for groups of
  columns, (row blocks, column blocks) for blocks; if the scheme is not symmetric
  `weight_zero_point`, shaped like the scale, or packed along the rows where it is int32; where
  columns were reordered `weight_g_idx` (columns,), the group of each.

How activations were quantized is not followed: a program computes them in its own dtype.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rules_executorch.checkpoint.description import StoredQuantization, WeightScheme
from rules_executorch.checkpoint.stored_weights import SafetensorsWeights, Weights
from rules_executorch.common import dtypes
from rules_executorch.common.errors import UserError

if TYPE_CHECKING:
    import torch

METHOD: Final = "compressed-tensors"
FORMATS = ("dense", "float-quantized", "int-quantized", "naive-quantized", "pack-quantized")
_BITS = (4, 8)

_PACKED, _SCALE, _ZERO, _SHAPE, _GROUPS = (
    f".weight_{part}" for part in ("packed", "scale", "zero_point", "shape", "g_idx")
)
_ACTIVATIONS = re.compile(r"\.(input|output)_(scale|zero_point)$")
"""Ranges of activations, which nothing here reads."""

_BEFORE = "Use the checkpoint before quantization and set `quantization` on the export."


def check(config: Any, path: str) -> None:
    """Checks the `quantization_config` of a config.json.

    Args:
        config: its value.
        path: how messages call config.json.

    Raises:
        UserError: another method than compressed-tensors, a format that is not in `FORMATS`, bits
            that are neither 4 nor 8, a quantized cache, or rotated weights.
    """
    method = config.get("quant_method") if isinstance(config, Mapping) else None
    if method != METHOD:
        raise UserError(
            f"{path} says that the weights are quantized ({str(method)[:60]}), in a layout that"
            f" only its own kernels read; of layouts like that, {METHOD} alone is read.",
            instead=_BEFORE,
        )
    groups = _groups(config, path)
    formats = {config.get("format"), *(group.get("format") for group in groups)} - {None}
    if len(groups) > 1:
        # The name for groups of several formats.
        formats.discard("mixed-precision")
    sparsity = config.get("sparsity_config") or {}
    if isinstance(sparsity, Mapping) and sparsity.get("format") not in (None, "dense"):
        formats.add(sparsity["format"])
    unknown = sorted(str(name)[:60] for name in formats if name not in FORMATS)
    if unknown:
        raise UserError(
            f"{path} has weights in the format {unknown[0]} of {METHOD}, and the formats that are"
            f" read are {', '.join(FORMATS)}.",
            instead=_BEFORE,
        )
    for group in groups:
        bits = (group.get("weights") or {}).get("num_bits")
        if group.get("weights") and bits not in _BITS:
            raise UserError(
                f"{path} has weights of {str(bits)[:20]} bits, and 4 and 8 are read.",
                instead=_BEFORE,
            )
    for key, what in (
        ("kv_cache_scheme", "a quantized cache"),
        ("transform_config", "weights that are rotated when the model runs"),
    ):
        if config.get(key):
            raise UserError(
                f"{path} asks for {what} (`{key}`), which is not read.", instead=_BEFORE
            )


def _groups(config: Mapping[str, Any], path: str) -> list[Mapping[str, Any]]:
    groups = config.get("config_groups") or {}
    listed = list(groups.values()) if isinstance(groups, Mapping) else [groups]
    if not all(
        isinstance(group, Mapping) and isinstance(group.get("weights") or {}, Mapping)
        for group in listed
    ):
        raise UserError(
            f"`config_groups` of the quantization_config in {path} is not an object of schemes.",
            instead="Use the config.json of the model's repository, unchanged.",
        )
    return listed


def describe(config: Mapping[str, Any], path: str) -> StoredQuantization:
    """What model.json says of a `quantization_config` that `check` lets pass."""
    return StoredQuantization(
        method=METHOD,
        format=config.get("format"),
        weights=tuple(
            _scheme(group["weights"]) for group in _groups(config, path) if group.get("weights")
        ),
    )


def _scheme(weights: Mapping[str, Any]) -> WeightScheme:
    group_size = weights.get("group_size")
    return WeightScheme(
        type=str(weights.get("type") or "int")[:20],
        bits=weights["num_bits"],
        strategy=str(weights.get("strategy"))[:20],
        group_size=group_size if type(group_size) is int else None,
        symmetric=weights.get("symmetric") is not False,
    )


def is_compressed(stored: SafetensorsWeights) -> bool:
    """Whether there are layers of this kind among the tensors."""
    return any(name.endswith((_PACKED, _SCALE)) for name in stored.names())


class CompressedTensorsWeights(Weights):
    """The weights of a quantized checkpoint, in the dtype of their scales."""

    def __init__(self, stored: SafetensorsWeights) -> None:
        """Finds the quantized layers.

        Raises:
            UserError: parts of a layer are missing or do not fit together.
        """
        self._stored = stored
        here = set(stored.names())
        self._layers = {name.removesuffix(_SCALE) for name in here if name.endswith(_SCALE)} | {
            name.removesuffix(_PACKED) for name in here if name.endswith(_PACKED)
        }
        parts = (_PACKED, _SCALE, _ZERO, _SHAPE, _GROUPS)
        self._names = {
            name for name in here if not name.endswith(parts) and not _ACTIVATIONS.search(name)
        } | {f"{layer}.weight" for layer in self._layers}
        self._shapes = {f"{layer}.weight": self._check(layer, here) for layer in self._layers}

    def names(self) -> list[str]:
        return sorted(self._names)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._shapes.get(name) or self._stored.shape(name)

    def dtype(self, name: str) -> str:
        return self._stored.dtype(self._scale(name) if name in self._shapes else name)

    def source(self, name: str) -> str:
        return self._stored.source(self._scale(name) if name in self._shapes else name)

    def _scale(self, name: str) -> str:
        return name.removesuffix(".weight") + _SCALE

    def _check(self, layer: str, here: set[str]) -> tuple[int, ...]:
        """The shape of a layer's weight, once its parts are known to fit."""
        stored = self._stored

        def damaged(why: str) -> UserError:
            where = stored.source(next(n for n in sorted(here) if n.startswith(f"{layer}.")))
            return UserError(
                f"The quantized layer {layer[:200]} in {where} is not one of {METHOD}: {why}.",
                instead="Fetch the checkpoint again. " + _BEFORE,
            )

        if layer + _SCALE not in here:
            raise damaged("it has no `weight_scale`")
        if stored.dtype(layer + _SCALE) not in dtypes.FLOATING:
            raise damaged(f"its scales are {stored.dtype(layer + _SCALE)}")
        if layer + _PACKED in here:
            packed = stored.shape(layer + _PACKED)
            if layer + _SHAPE not in here or stored.shape(layer + _SHAPE) != (2,):
                raise damaged("it has no `weight_shape` of two sizes")
            shape = tuple(stored.tensor(layer + _SHAPE).tolist())
            if (
                stored.dtype(layer + _PACKED) != "int32"
                or len(packed) != 2
                or shape[0] != packed[0]
                or self._bits(shape[1], packed[1]) is None
            ):
                raise damaged(f"int32 words {list(packed)} do not hold a weight {list(shape)}")
        else:
            if f"{layer}.weight" not in here:
                raise damaged("it has no `weight`")
            shape, dtype = stored.shape(f"{layer}.weight"), stored.dtype(f"{layer}.weight")
            if dtype not in ("int8", "float8_e4m3fn") or len(shape) != 2:
                raise damaged(f"its weight is {dtype} {list(shape)}")
        scales = stored.shape(layer + _SCALE)
        one = math.prod(scales) == 1
        fits = len(scales) == 2 and all(size > 0 for size in scales)
        if layer + _GROUPS in here:
            fits = fits and scales[0] == shape[0] and stored.shape(layer + _GROUPS) == shape[1:]
        else:
            fits = fits and all(not size % count for size, count in zip(shape, scales, strict=True))
        if not one and not fits:
            raise damaged(f"scales {list(scales)} do not fit a weight {list(shape)}")
        if layer + _ZERO in here:
            zeros, dtype = stored.shape(layer + _ZERO), stored.dtype(layer + _ZERO)
            expected = scales
            if dtype == "int32" and layer + _PACKED in here and not one:
                bits = self._bits(shape[1], stored.shape(layer + _PACKED)[1])
                assert bits is not None
                expected = (-(-scales[0] * bits // 32), scales[1])
            if zeros != expected:
                raise damaged(f"zero points {list(zeros)} do not fit scales {list(scales)}")
        return shape

    def _bits(self, columns: int, words: int) -> int | None:
        fitting = [bits for bits in _BITS if -(-columns * bits // 32) == words]
        return fitting[0] if len(fitting) == 1 else None

    def _load(self, name: str) -> torch.Tensor:
        stored = self._stored
        if name not in self._shapes:
            return stored.tensor(name)
        layer, shape = name.removesuffix(".weight"), self._shapes[name]
        scale = stored.tensor(layer + _SCALE)
        zero = stored.tensor(layer + _ZERO) if layer + _ZERO in set(stored.names()) else None
        if layer + _PACKED in set(stored.names()):
            packed = stored.tensor(layer + _PACKED)
            bits = self._bits(shape[1], packed.shape[1])
            assert bits is not None
            values = unpack(packed, bits, shape[1])
            if zero is not None and zero.shape != scale.shape:
                zero = unpack(zero.T.contiguous(), bits, scale.shape[0]).T
        else:
            values = stored.tensor(name)
        groups = stored.tensor(layer + _GROUPS) if layer + _GROUPS in set(stored.names()) else None
        if groups is not None and bool((groups < 0).any()):
            # What the library writes where it kept the order after all.
            groups = None
        values = values.to(scale.dtype)
        if zero is not None:
            values = values - _spread(zero.to(scale.dtype), shape, groups)
        return values * _spread(scale, shape, groups)


def unpack(words: torch.Tensor, bits: int, columns: int) -> torch.Tensor:
    """Takes int32 words, (rows, words), apart: int32 (rows, columns), from -2^(bits-1)."""
    import torch

    shifts = torch.arange(0, 32, bits, dtype=torch.int32)
    values = (words.unsqueeze(-1) >> shifts) & (2**bits - 1)
    return values.flatten(1)[:, :columns] - 2 ** (bits - 1)


def _spread(
    values: torch.Tensor, shape: tuple[int, ...], groups: torch.Tensor | None
) -> torch.Tensor:
    """Scales or zero points for each element of a weight of `shape`, or one for all."""
    if values.numel() == 1:
        return values.reshape(())
    if groups is not None:
        return values[:, groups.long()]
    rows, columns = (size // count for size, count in zip(shape, values.shape, strict=True))
    if rows > 1:
        values = values.repeat_interleave(rows, 0)
    return values if values.shape[1] == 1 else values.repeat_interleave(columns, 1)
