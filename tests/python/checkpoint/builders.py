"""Files for the tests: safetensors and GGUF written byte by byte, so that they can be wrong."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

CASES = Path(__file__).parent.parent.parent / "cases"
MODELS = Path(__file__).parent.parent.parent.parent / "models" / "tiny"


def safetensors(
    path: Path, header: dict[str, Any] | bytes, data: bytes = b"", length: int | None = None
) -> Path:
    """Writes a safetensors file of any header, with any claim of its length."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    claim = len(text) if length is None else length
    path.write_bytes(claim.to_bytes(8, "little") + text + data)
    return path


def entry(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, Any]:
    """A tensor's entry in the header."""
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def floats(path: Path, **shapes: tuple[int, ...]) -> Path:
    """Writes float32 tensors of zeros by keyword; `__` in a name stands for a dot."""
    header, offset = {}, 0
    for name, shape in shapes.items():
        size = 4
        for n in shape:
            size *= n
        header[name.replace("__", ".")] = entry("F32", list(shape), offset, offset + size)
        offset += size
    return safetensors(path, header, bytes(offset))


class Gguf:
    """Writes a GGUF file piece by piece."""

    def __init__(self, *, magic: bytes = b"GGUF", version: int = 3) -> None:
        self.magic, self.version = magic, version
        self.keys: list[bytes] = []
        self.tensors: list[bytes] = []
        self.data = b""
        self.num_keys: int | None = None
        self.num_tensors: int | None = None

    @staticmethod
    def string(text: str | bytes, length: int | None = None) -> bytes:
        data = text.encode() if isinstance(text, str) else text
        return struct.pack("<Q", len(data) if length is None else length) + data

    def key(self, name: str, kind: int, value: bytes) -> Gguf:
        self.keys.append(self.string(name) + struct.pack("<I", kind) + value)
        return self

    def text(self, name: str, value: str) -> Gguf:
        return self.key(name, 8, self.string(value))

    def number(self, name: str, value: int) -> Gguf:
        return self.key(name, 4, struct.pack("<I", value))

    def tensor(
        self, name: str, dims: list[int], kind: int = 0, offset: int = 0, claim: int | None = None
    ) -> Gguf:
        count = len(dims) if claim is None else claim
        self.tensors.append(
            self.string(name)
            + struct.pack("<I", count)
            + b"".join(struct.pack("<Q", d) for d in dims)
            + struct.pack("<IQ", kind, offset)
        )
        return self

    def write(self, path: Path) -> Path:
        head = self.magic + struct.pack(
            "<IQQ",
            self.version,
            len(self.tensors) if self.num_tensors is None else self.num_tensors,
            len(self.keys) if self.num_keys is None else self.num_keys,
        )
        body = head + b"".join(self.keys) + b"".join(self.tensors)
        path.write_bytes(body + bytes(-len(body) % 32) + self.data)
        return path
