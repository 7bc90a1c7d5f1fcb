"""Weights that go into an XNNPACK delegate as they are, without a copy in between.

Rests on `executorch/backends/xnnpack/operators/node_visitor.py`
(`get_serialized_buffer_index`), which copies each weight twice, to hash it and to store it, and on
what `compat/weights.py` rests on.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import re
from collections.abc import Iterator
from typing import Any

import torch
from executorch.backends.xnnpack.operators import node_visitor
from executorch.exir._serialize._named_data_store import NamedDataStore

from rules_executorch.compat.patch import replaced
from rules_executorch.compat.weights import BorrowedData

_DIGEST = re.compile(r"[0-9a-f]{64}")


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
            data = BorrowedData(latest[0].untyped_storage(), digest)
        stock_add(self, key, data, *args, **kwargs)

    with contextlib.ExitStack() as stack:
        stack.enter_context(replaced(node_visitor, "get_param_tensor", find))
        stack.enter_context(replaced(NamedDataStore, "add_named_data", add))
        node_visitor.bytes = as_bytes
        stack.callback(delattr, node_visitor, "bytes")
        yield
