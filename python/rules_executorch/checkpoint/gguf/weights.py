"""The weights of a GGUF file: dequantized one tensor at a time, with transformers' names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules_executorch.checkpoint.gguf import architectures
from rules_executorch.checkpoint.gguf.header import GgufFile, type_name
from rules_executorch.checkpoint.stored_weights import Weights
from rules_executorch.common.errors import UserError

if TYPE_CHECKING:
    import torch

_BLOCKS_AT_ONCE = 1 << 17
"""Blocks that are dequantized in one step, so that a step needs some tens of megabytes."""


class GgufWeights(Weights):
    """The weights of one GGUF file as float32."""

    named_by_transformers = False

    def __init__(self, path: str) -> None:
        """Opens the file; see `GgufFile` and `gguf_architectures` for what is refused."""
        self._file = GgufFile(path)
        self._keys = architectures.Keys(self._file)
        self._names = architectures.names(self._file, self._keys)

    def names(self) -> list[str]:
        return sorted(self._names)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._file.tensors[self._names[name]].shape

    def dtype(self, name: str) -> str:
        return "float32"

    def source(self, name: str) -> str:
        return self._file.path

    def _load(self, name: str) -> torch.Tensor:
        stored = self._names[name]
        return architectures.restore(dequantized(self._file, stored), stored, self._keys)


def dequantized(file: GgufFile, name: str) -> torch.Tensor:
    """A tensor as float32 in ggml's layout.

    Raises:
        UserError: the `gguf` package cannot dequantize its type.
    """
    import gguf
    import numpy as np
    import torch

    tensor = file.tensors[name]
    kind = gguf.GGMLQuantizationType(tensor.type)
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    packed = np.frombuffer(file.data(name), dtype=np.uint8).reshape(-1, size)
    result: np.ndarray = np.empty((len(packed), elements), dtype=np.float32)
    try:
        for start in range(0, len(packed), _BLOCKS_AT_ONCE):
            part = packed[start : start + _BLOCKS_AT_ONCE]
            values = gguf.quants.dequantize(part, kind)
            result[start : start + _BLOCKS_AT_ONCE] = values.reshape(-1, elements)
    except NotImplementedError as error:
        raise UserError(
            f"The tensor {name!r} in {file.path} is of the type {type_name(kind)},"
            " which the `gguf` package cannot dequantize.",
            instead="Use a file of a common type, such as Q8_0, Q4_K_M or F16.",
        ) from error
    return torch.from_numpy(result.reshape(tensor.shape))
