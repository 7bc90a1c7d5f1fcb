"""The header of a GGUF file, checked against the file before anything is allocated by it.

The format is that of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md: magic, version,
tensor count, key count, key-value pairs, tensor entries (name, dimensions with the innermost first,
type, offset), padding to `general.alignment`, then the data.
"""

from __future__ import annotations

import dataclasses
import math
import struct
import sys
from array import array
from typing import Any

from rules_executorch.checkpoint.mapped_file import MappedFile
from rules_executorch.common.errors import UserError

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MAX_TENSORS = 1_000_000
_MAX_KEYS = 100_000
_MAX_KEY_BYTES = 65_535
_MAX_STRING_BYTES = 64_000_000
_MAX_ARRAY_ITEMS = 16_000_000
_MAX_DIMENSIONS = 4
_MAX_TENSOR_NAME_BYTES = 256
_MAX_SIZE = 2**48

_STRING, _ARRAY, _BOOL = 8, 9, 7
# Type number of a value -> format of `struct` and typecode of `array`.
_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "B",
    10: "Q",
    11: "q",
    12: "d",
}


class _Malformed(ValueError):
    """A clause that completes 'FILE is not a readable GGUF file: ...'."""


@dataclasses.dataclass(frozen=True)
class GgufTensor:
    """Where a tensor lies in its file, and how it is packed."""

    name: str
    shape: tuple[int, ...]
    """In torch's order, the innermost dimension last."""
    type: int
    """A `GGMLQuantizationType`."""
    begin: int
    """Offset of the first byte in the file."""
    num_bytes: int

    @property
    def num_elements(self) -> int:
        return math.prod(self.shape)


class _Reader:
    """A position in the mapped bytes that never reads past their end."""

    def __init__(self, file: MappedFile) -> None:
        self._file = file
        self.position = 0

    def take(self, length: int, what: str) -> bytes:
        if length > self._file.size - self.position:
            raise _Malformed(f"it ends inside of {what}: it is truncated or damaged")
        data = self._file.read(self.position, length)
        self.position += length
        return data

    def number(self, code: str, what: str) -> Any:
        return struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}"), what))[0]

    def string(self, limit: int, what: str) -> str:
        length = self.number("Q", what)
        if length > limit:
            raise _Malformed(f"{what} claims {length:,} bytes, more than the {limit:,} allowed")
        try:
            return self.take(length, what).decode("utf-8")
        except UnicodeDecodeError as error:
            raise _Malformed(f"{what} is not UTF-8") from error

    def value(self, kind: int, what: str) -> Any:
        if kind == _STRING:
            return self.string(_MAX_STRING_BYTES, what)
        if kind == _ARRAY:
            return self._array(what)
        if kind not in _SCALARS:
            raise _Malformed(f"{what} has the unknown value type {kind}")
        number = self.number(_SCALARS[kind], what)
        return bool(number) if kind == _BOOL else _shortest(number) if kind == 6 else number

    def _array(self, what: str) -> list[Any]:
        kind, count = self.number("I", what), self.number("Q", what)
        if count > _MAX_ARRAY_ITEMS:
            raise _Malformed(
                f"{what} claims {count:,} items, more than the {_MAX_ARRAY_ITEMS:,} allowed"
            )
        if kind == _STRING:
            if count * 8 > self._file.size - self.position:
                raise _Malformed(f"it ends inside of {what}: it is truncated or damaged")
            return [self.string(_MAX_STRING_BYTES, what) for _ in range(count)]
        if kind not in _SCALARS:
            raise _Malformed(f"{what} is an array of the unknown or nested value type {kind}")
        code = _SCALARS[kind]
        items = array(code, self.take(count * struct.calcsize(f"<{code}"), what))
        if sys.byteorder == "big":
            items.byteswap()
        return [bool(item) for item in items] if kind == _BOOL else items.tolist()


def _shortest(number: float) -> float:
    """The float64 with the shortest decimal form that rounds to the same float32: 1e-05."""
    if not math.isfinite(number):
        return number
    for digits in range(6, 10):
        candidate = float(f"{number:.{digits}g}")
        if struct.pack("<f", candidate) == struct.pack("<f", number):
            return candidate
    return number


def _block(kind: int, name: str) -> tuple[int, int]:
    """Elements and bytes of one block of a ggml type."""
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    try:
        return GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
    except (ValueError, KeyError) as error:
        raise _Malformed(f"the tensor {name!r} has the unknown ggml type {kind}") from error


def type_name(kind: int) -> str:
    """ggml's name of a type, `Q4_1`."""
    from gguf import GGMLQuantizationType

    return GGMLQuantizationType(kind).name


def _tensor(reader: _Reader, number: int) -> GgufTensor:
    what = f"tensor entry {number}"
    name = reader.string(_MAX_TENSOR_NAME_BYTES, f"the name in {what}")
    dimensions = reader.number("I", what)
    if not 1 <= dimensions <= _MAX_DIMENSIONS:
        raise _Malformed(f"the tensor {name!r} claims {dimensions} dimensions")
    sizes = [reader.number("Q", what) for _ in range(dimensions)]
    kind, offset = reader.number("I", what), reader.number("Q", what)
    if not all(1 <= size <= _MAX_SIZE for size in sizes) or math.prod(sizes) > _MAX_SIZE:
        raise _Malformed(f"the tensor {name!r} claims the dimensions {sizes}")
    elements, size = _block(kind, name)
    if sizes[0] % elements:
        raise _Malformed(
            f"rows of the tensor {name!r} have {sizes[0]} elements, which blocks of {elements}"
            f" ({type_name(kind)}) do not divide"
        )
    num_bytes = math.prod(sizes) // elements * size
    return GgufTensor(name, tuple(reversed(sizes)), kind, offset, num_bytes)


def _place(tensors: list[GgufTensor], data_start: int, alignment: int, size: int) -> None:
    """Checks that the tensors' data is aligned, inside of the file, and does not overlap."""
    end, previous = 0, None
    for tensor in sorted(tensors, key=lambda t: (t.begin, t.num_bytes)):
        if tensor.begin % alignment:
            raise _Malformed(f"the tensor {tensor.name!r} is not aligned to {alignment} bytes")
        if tensor.begin < end:
            raise _Malformed(f"the tensors {previous!r} and {tensor.name!r} overlap")
        if tensor.begin - end >= alignment:
            raise _Malformed(
                f"{tensor.begin - end:,} bytes before {tensor.name!r} belong to no tensor"
            )
        end, previous = tensor.begin + tensor.num_bytes, tensor.name
        if data_start + end > size:
            raise _Malformed(
                f"{tensor.name!r} ends at byte {data_start + end:,}, but the file has {size:,}:"
                " it is truncated or damaged"
            )
    if size - (data_start + end) >= alignment:
        raise _Malformed(f"the last {size - data_start - end:,} bytes belong to no tensor")


def _parse(file: MappedFile) -> tuple[dict[str, Any], dict[str, GgufTensor]]:
    reader = _Reader(file)
    magic = reader.take(4, "the magic number")
    if magic != _MAGIC:
        raise _Malformed(f"it starts with {magic!r} instead of {_MAGIC!r}")
    version = reader.number("I", "the version")
    if version not in _VERSIONS:
        raise _Malformed(f"its version is {version}, and only {_VERSIONS} are read")
    num_tensors = reader.number("Q", "the number of tensors")
    num_keys = reader.number("Q", "the number of keys")
    if not 1 <= num_tensors <= _MAX_TENSORS:
        raise _Malformed(f"it claims {num_tensors:,} tensors")
    if num_keys > _MAX_KEYS:
        raise _Malformed(f"it claims {num_keys:,} keys, more than the {_MAX_KEYS:,} allowed")
    metadata: dict[str, Any] = {}
    for number in range(num_keys):
        key = reader.string(_MAX_KEY_BYTES, f"key {number}")
        if key in metadata:
            raise _Malformed(f"the key {key[:200]!r} occurs twice")
        kind = reader.number("I", f"the key {key[:200]!r}")
        metadata[key] = reader.value(kind, f"the key {key[:200]!r}")
    tensors: list[GgufTensor] = []
    names: set[str] = set()
    for number in range(num_tensors):
        tensor = _tensor(reader, number)
        if tensor.name in names:
            raise _Malformed(f"the tensor {tensor.name!r} occurs twice")
        names.add(tensor.name)
        tensors.append(tensor)
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or not 8 <= alignment <= 2**16 or alignment & (alignment - 1):
        raise _Malformed(f"its alignment is {str(alignment)[:40]}")
    data_start = -(-reader.position // alignment) * alignment
    _place(tensors, data_start, alignment, file.size)
    placed = (dataclasses.replace(t, begin=data_start + t.begin) for t in tensors)
    return metadata, {tensor.name: tensor for tensor in placed}


class GgufFile:
    """A GGUF file: its keys, and where its tensors are."""

    def __init__(self, path: str) -> None:
        """Opens `path` and checks its header against the file; no tensor is read.

        Raises:
            UserError: the file is missing, truncated, damaged or not GGUF.
        """
        self.path = path
        self._file = MappedFile(path)
        try:
            self.metadata, self.tensors = _parse(self._file)
        except _Malformed as error:
            raise UserError(
                f"{path} is not a readable GGUF file: {error}.",
                instead="Fetch it again from where it comes from and check its sha256.",
            ) from error

    def data(self, name: str) -> memoryview:
        """The packed bytes of a tensor, as a view of the memory map."""
        tensor = self.tensors[name]
        return memoryview(self._file.buffer)[tensor.begin : tensor.begin + tensor.num_bytes]
