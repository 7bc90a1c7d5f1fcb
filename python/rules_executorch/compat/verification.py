"""Checks of edge programs that read what passes recorded instead of running the program again.

Rests on `executorch/exir/verification/arg_validator.py` (`EdgeOpArgValidator`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from executorch.exir.verification.arg_validator import EdgeOpArgValidator

from rules_executorch.compat.patch import replaced


@contextlib.contextmanager
def recorded_values() -> Iterator[None]:
    """Check argument types against the values recorded in the graph, node by node.

    The validator's own check of every operator stays. Only the execution after it, on fake
    tensors, is left out where the graph already records what it gives.
    """
    stock = torch.fx.Interpreter.call_function

    def call_function(self: Any, target: Any, args: Any, kwargs: Any) -> Any:
        if type(self) is EdgeOpArgValidator and "val" in self.node.meta:
            return self.node.meta["val"]
        return stock(self, target, args, kwargs)

    with replaced(torch.fx.Interpreter, "call_function", call_function):
        yield
