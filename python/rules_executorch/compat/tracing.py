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

from rules_executorch.compat.patch import Patch, replaced, unsuitable

_LARGE = 2**16


def _is_large(value: Any) -> bool:
    if isinstance(value, torch.nn.Parameter):
        return True
    # The size of a fake tensor is symbolic: to compare it would bound the dynamic dimension.
    return type(value) is torch.Tensor and value.numel() > _LARGE


@contextlib.contextmanager
def _uncopied_parameters() -> Iterator[None]:
    from torch._dynamo.variables import builder

    stock = builder._clone_input

    def clone_input(value: Any, fake_mode: Any) -> Any:
        # Values decide something about a graph where Python asks for them (lengths, flags), which
        # no model does with a parameter or a cache.
        return value if _is_large(value) else stock(value, fake_mode)

    with replaced(builder, "_clone_input", clone_input):
        yield


UNCOPIED_PARAMETERS = Patch(
    "uncopied_parameters",
    "the tracer copies every parameter and cache, though only shapes matter to a graph",
    _uncopied_parameters,
)


@contextlib.contextmanager
def light_tracing() -> Iterator[str | None]:
    """Traces without copies of parameters and caches; the graph is the same.

    Yields:
        None, or why the installed torch is traced the stock way.
    """
    why = unsuitable(UNCOPIED_PARAMETERS)
    if why is not None:
        yield why
        return
    with UNCOPIED_PARAMETERS.apply():
        yield None
