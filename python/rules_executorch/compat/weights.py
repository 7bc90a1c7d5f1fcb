"""Weights that go into the program as they are, without a copy in between.

Rests on `executorch/backends/xnnpack/operators/node_visitor.py`
(`get_serialized_buffer_index`), which copies each weight twice, to hash it and to store it, and
on `executorch/exir/_serialize/_named_data_store.py` and `_cord.py`, which write a
`FileBackedData` where it stands in for bytes.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import hashlib
import io
import re
from collections.abc import Iterator
from typing import Any

import torch
from executorch.backends.xnnpack.operators import node_visitor
from executorch.exir._serialize._cord import FileBackedData
from executorch.exir._serialize._named_data_store import NamedDataStore

from rules_executorch.compat.patch import replaced

_DIGEST = re.compile(r"[0-9a-f]{64}")


class BorrowedData(FileBackedData):
    """The storage of a tensor in the place of bytes. The tensor must not change until written."""

    def __init__(self, tensor: torch.Tensor, sha256: bytes | None = None) -> None:
        storage = tensor.untyped_storage()
        self._tensor = tensor
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
def borrowed_weights() -> Iterator[None]:
    """Let the store refer to the storage of an XNNPACK weight that is stored unchanged."""
    stock_find = node_visitor.get_param_tensor
    stock_add = NamedDataStore.add_named_data
    latest: list[torch.Tensor] = []

    def find(*args: Any, **kwargs: Any) -> Any:
        tensor = stock_find(*args, **kwargs)
        latest[:] = [tensor] if type(tensor) in (torch.Tensor, torch.nn.Parameter) else []
        return tensor

    def unchanged(address: int, size: int) -> bool:
        storages = [tensor.untyped_storage() for tensor in latest]
        return any((s.data_ptr(), s.nbytes()) == (address, size) for s in storages)

    def as_bytes(array: Any = b"") -> bytes | memoryview:
        """Stands in for `bytes`: a view where the array is the weight itself."""
        if isinstance(array, ctypes.Array) and unchanged(
            ctypes.addressof(array), ctypes.sizeof(array)
        ):
            return memoryview(array)
        return builtins.bytes(array)

    def add(self: NamedDataStore, key: str, data: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(data, memoryview):
            digest = bytes.fromhex(key) if _DIGEST.fullmatch(key) else None
            data = BorrowedData(latest[0], digest)
        stock_add(self, key, data, *args, **kwargs)

    with contextlib.ExitStack() as stack:
        stack.enter_context(replaced(node_visitor, "get_param_tensor", find))
        stack.enter_context(replaced(NamedDataStore, "add_named_data", add))
        node_visitor.bytes = as_bytes
        stack.callback(delattr, node_visitor, "bytes")
        yield
