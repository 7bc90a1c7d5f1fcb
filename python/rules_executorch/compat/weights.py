"""Weights that go into the program as they are, without a copy in between.

Rests on `executorch/exir/emit/_emitter.py` (`_tensor_spec_to_evalue`, `_save_new_const_tensor`),
which copies the constants of the portable kernels, and on `executorch/exir/_serialize/`
(`_named_data_store.py`, `_cord.py`, `_program.py`), which write a `FileBackedData` where it
stands in for bytes.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import hashlib
import io
from collections.abc import Iterator
from typing import Any

import torch
from executorch.exir._serialize._cord import FileBackedData
from executorch.exir.emit import _emitter
from executorch.exir.tensor import TensorSpec

from rules_executorch.compat.patch import replaced

# Bytes of a constant that are worth a reference.
_LARGE = 1 << 20


class BorrowedData(FileBackedData):
    """A storage in the place of bytes. It must not change until it is written."""

    def __init__(self, storage: torch.UntypedStorage, sha256: bytes | None = None) -> None:
        self._storage = storage
        self._size = storage.nbytes()
        self._view = memoryview((ctypes.c_char * self._size).from_address(storage.data_ptr()))
        self._sha256 = sha256
        self._finalizer = None

    def prefix(self, size: int) -> bytes:
        return bytes(self._view[:size])

    def sha256(self) -> bytes:
        if self._sha256 is None:
            self._sha256 = hashlib.sha256(self._view).digest()
        return self._sha256

    def to_bytes(self) -> bytes:
        return bytes(self._view)

    def write_to_file(self, outfile: io.BufferedIOBase) -> None:
        outfile.write(self._view)

    def __deepcopy__(self, memo: dict[int, Any]) -> BorrowedData:
        return self


@contextlib.contextmanager
def borrowed_constants() -> Iterator[None]:
    """Let the program refer to the storage of a large constant of the portable kernels."""
    stock_save = _emitter._Emitter._save_new_const_tensor

    def as_bytes(array: Any = b"") -> bytes | memoryview:
        if isinstance(array, ctypes.Array) and ctypes.sizeof(array) >= _LARGE:
            return memoryview(array)
        return builtins.bytes(array)

    def save(
        self: Any,
        spec: TensorSpec,
        buffer_data: Any,
        hashed: str,
        allocation_info: Any = None,
        constant_tag: str | None = None,
    ) -> int:
        if isinstance(buffer_data, memoryview):
            # Constants that are initial values, or go to a file of their own, are copied as ever.
            plain = allocation_info is None and constant_tag is None
            if plain and spec.extra_tensor_info is None:
                buffer_data = BorrowedData(spec.storage, builtins.bytes.fromhex(hashed))
            else:
                buffer_data = builtins.bytes(buffer_data)
        return stock_save(self, spec, buffer_data, hashed, allocation_info, constant_tag)

    with contextlib.ExitStack() as stack:
        stack.enter_context(replaced(_emitter._Emitter, "_save_new_const_tensor", save))
        _emitter.bytes = as_bytes
        stack.callback(delattr, _emitter, "bytes")
        yield
