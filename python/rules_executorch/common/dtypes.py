"""Element types: what safetensors, torch and config.json call them.

The safetensors names are those of its format description, "Format" in the README of
https://github.com/huggingface/safetensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# safetensors name -> (bytes of an element, torch's name)
_SAFETENSORS: dict[str, tuple[int, str]] = {
    "BOOL": (1, "bool"),
    "U8": (1, "uint8"),
    "I8": (1, "int8"),
    "F8_E5M2": (1, "float8_e5m2"),
    "F8_E4M3": (1, "float8_e4m3fn"),
    "F8_E8M0": (1, "float8_e8m0fnu"),
    "U16": (2, "uint16"),
    "I16": (2, "int16"),
    "F16": (2, "float16"),
    "BF16": (2, "bfloat16"),
    "U32": (4, "uint32"),
    "I32": (4, "int32"),
    "F32": (4, "float32"),
    "U64": (8, "uint64"),
    "I64": (8, "int64"),
    "F64": (8, "float64"),
    "C64": (8, "complex64"),
}

FLOATING = ("float64", "float32", "float16", "bfloat16")
"""dtypes that the parameters of a model to export may have, by torch's name."""


def is_known(safetensors_name: object) -> bool:
    """Whether torch has the safetensors dtype and its elements are whole bytes."""
    return isinstance(safetensors_name, str) and safetensors_name in _SAFETENSORS


def element_size(safetensors_name: str) -> int:
    """Bytes of one element."""
    return _SAFETENSORS[safetensors_name][0]


def torch_name(safetensors_name: str) -> str:
    """torch's name of a safetensors dtype: `BF16` is `bfloat16`."""
    return _SAFETENSORS[safetensors_name][1]


def safetensors_name(torch_dtype_name: str) -> str:
    """safetensors' name of a torch dtype: `bfloat16` is `BF16`.

    Raises:
        KeyError: safetensors has no such dtype.
    """
    for name, (_, torch_dtype) in _SAFETENSORS.items():
        if torch_dtype == torch_dtype_name:
            return name
    raise KeyError(torch_dtype_name)


def torch_dtype(name: str) -> torch.dtype:
    """The torch dtype called `name`."""
    import torch

    return getattr(torch, name)
