"""Tracing a model for export without a copy of its parameters and caches.

Rests on `torch/_dynamo/variables/builder.py`: for an export, the tracer clones every tensor that
enters the graph (`_clone_input`), in case an operator has to be run on real values. That would
make memory grow with the weights and read memory that an export has no use for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch._dynamo.variables import builder

from rules_executorch.compat.patch import replaced

_LARGE = 2**16


def _is_large(value: Any) -> bool:
    if isinstance(value, torch.nn.Parameter):
        return True
    # The size of a fake tensor is symbolic: to compare it would bound the dynamic dimension.
    return type(value) is torch.Tensor and value.numel() > _LARGE


@contextlib.contextmanager
def uncopied_parameters() -> Iterator[None]:
    """Clones small tensors only, such as lengths and flags."""
    stock = builder._clone_input

    def clone_input(value: Any, fake_mode: Any) -> Any:
        # Values decide something about a graph where Python asks for them (lengths, flags), which
        # no model does with a parameter or a cache.
        return value if _is_large(value) else stock(value, fake_mode)

    with replaced(builder, "_clone_input", clone_input):
        yield
