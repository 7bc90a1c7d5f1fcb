"""One safetensors file: a header that is checked before anything is allocated, and tensors.

The format (https://github.com/huggingface/safetensors, "Format"): 8 bytes of little-endian header
length, a JSON header `{name: {"dtype", "shape", "data_offsets": [begin, end]}}` with an optional
`__metadata__` of strings, then the data, of which every byte belongs to exactly one tensor.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from rules_executorch.checkpoint import strict_json
from rules_executorch.checkpoint.mapped_file import MappedFile
from rules_executorch.common import dtypes
from rules_executorch.common.errors import UserError

if TYPE_CHECKING:
    import torch

MAX_HEADER_BYTES = 100_000_000
"""The bound that the safetensors library itself sets."""

MAX_DIMENSIONS = 16
_MAX_METADATA = 1_000


@dataclasses.dataclass(frozen=True)
class TensorEntry:
    """Where a tensor lies in its file."""

    dtype: str
    """safetensors' name, `F32`."""
    shape: tuple[int, ...]
    begin: int
    """Offset of the first byte in the file."""
    end: int
    """Offset after the last byte in the file."""

    @property
    def num_elements(self) -> int:
        return math.prod(self.shape)

    @property
    def num_bytes(self) -> int:
        return self.end - self.begin


class _Malformed(ValueError):
    """A clause that completes 'FILE is not a readable safetensors file: ...'."""


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _entry(name: str, value: Any, data_start: int, data_size: int) -> TensorEntry:
    shown = repr(name[:200])
    if not isinstance(value, dict):
        raise _Malformed(f"the header's entry of {shown} is not an object")
    unknown = set(value) - {"dtype", "shape", "data_offsets"}
    if unknown:
        raise _Malformed(f"{shown} has the unknown field {sorted(unknown)[0][:200]!r}")
    dtype, shape, offsets = (value.get(key) for key in ("dtype", "shape", "data_offsets"))
    if not isinstance(dtype, str) or not dtypes.is_known(dtype):
        raise _Malformed(f"{shown} has the unknown dtype {str(dtype)[:40]!r}")
    if not isinstance(shape, list) or not all(map(_is_count, shape)):
        raise _Malformed(f"the shape of {shown} is not a list of sizes")
    if len(shape) > MAX_DIMENSIONS:
        raise _Malformed(f"{shown} has {len(shape)} dimensions, more than {MAX_DIMENSIONS}")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
        raise _Malformed(f"data_offsets of {shown} is not a pair of offsets")
    begin, end = offsets
    if begin > end:
        raise _Malformed(f"data_offsets of {shown} go backwards: {begin} to {end}")
    if end > data_size:
        raise _Malformed(
            f"{shown} ends at byte {end:,} of the data, but the file holds {data_size:,}:"
            " it is truncated or damaged"
        )
    wanted = math.prod(shape) * dtypes.element_size(dtype)
    if end - begin != wanted:
        raise _Malformed(
            f"{shown} takes {end - begin:,} bytes, but its shape and dtype need {wanted:,}"
        )
    return TensorEntry(dtype, tuple(shape), data_start + begin, data_start + end)


def _check_coverage(entries: dict[str, TensorEntry], data_start: int, file_size: int) -> None:
    """Every byte of the data belongs to exactly one tensor."""
    position, previous = data_start, None
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin < position:
            raise _Malformed(f"the tensors {previous!r} and {name[:200]!r} overlap")
        if entry.begin > position:
            raise _Malformed(
                f"{entry.begin - position:,} bytes before {name[:200]!r} belong to no tensor"
            )
        position, previous = entry.end, name[:200]
    if position != file_size:
        raise _Malformed(f"the last {file_size - position:,} bytes belong to no tensor")


def _parse(file: MappedFile) -> tuple[dict[str, TensorEntry], dict[str, str]]:
    if file.size < 8:
        raise _Malformed(f"it has {file.size} bytes, fewer than the header's length takes")
    length = int.from_bytes(file.read(0, 8), "little")
    if file.read(0, 8) == b"version ":
        raise _Malformed("it is a Git LFS pointer, not the weights themselves")
    if length > MAX_HEADER_BYTES:
        raise _Malformed(
            f"it claims a header of {length:,} bytes, more than the {MAX_HEADER_BYTES:,} allowed"
        )
    if 8 + length > file.size:
        raise _Malformed(
            f"it claims a header of {length:,} bytes but has only {file.size - 8:,} left:"
            " it is truncated or damaged"
        )
    try:
        header = strict_json.parse(file.read(8, length))
    except ValueError as error:
        raise _Malformed(f"the header is not valid JSON, {error}") from error
    if not isinstance(header, dict):
        raise _Malformed("the header is not a JSON object")
    metadata = header.pop("__metadata__", None) or {}
    if (
        not isinstance(metadata, dict)
        or len(metadata) > _MAX_METADATA
        or not all(isinstance(value, str) for value in metadata.values())
    ):
        raise _Malformed("__metadata__ is not an object of strings")
    if not header:
        raise _Malformed("it holds no tensor")
    data_start = 8 + length
    data_size = file.size - data_start
    entries = {name: _entry(name, value, data_start, data_size) for name, value in header.items()}
    _check_coverage(entries, data_start, file.size)
    return entries, metadata


class SafetensorsFile:
    """Tensors of one safetensors file, as views of a memory map."""

    def __init__(self, path: str) -> None:
        """Opens `path` and checks its header against the file; no tensor is read.

        Raises:
            UserError: the file is missing, truncated, damaged or not safetensors.
        """
        self.path = path
        self._file = MappedFile(path)
        try:
            self.entries, self.metadata = _parse(self._file)
        except _Malformed as error:
            raise UserError(
                f"{path} is not a readable safetensors file: {error}.",
                instead="Fetch it again from the model's repository and check its sha256.",
            ) from error

    def tensor(self, name: str) -> torch.Tensor:
        """The tensor `name` with the file's shape and dtype.

        A view of the memory map where the data is aligned to its element size, else a copy.
        """
        import torch

        entry = self.entries[name]
        dtype = dtypes.torch_dtype(dtypes.torch_name(entry.dtype))
        if entry.num_elements == 0:
            return torch.empty(entry.shape, dtype=dtype)
        if entry.begin % dtypes.element_size(entry.dtype):
            data = bytearray(self._file.read(entry.begin, entry.num_bytes))
            return torch.frombuffer(data, dtype=dtype).reshape(entry.shape)
        flat = torch.frombuffer(
            self._file.buffer, dtype=dtype, count=entry.num_elements, offset=entry.begin
        )
        return flat.reshape(entry.shape)

    def release(self, name: str) -> None:
        """Gives back the memory of a tensor that was read; see `MappedFile.release`."""
        entry = self.entries[name]
        self._file.release(entry.begin, entry.num_bytes)
