"""Symbolic sizes, computed once for each pair of operands.

Rests on `torch/fx/experimental/sym_node.py`: arithmetic on `SymNode` asks sympy anew each time,
and every fake tensor with a dynamic size asks for the same few products and comparisons.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from torch import _logging
from torch.fx.experimental import proxy_tensor
from torch.fx.experimental.sym_node import _NO_HINT, SymNode

from rules_executorch.compat.patch import replaced

# Operators whose result is a function of the two expressions alone. Not `mod`, which looks at
# what is known about the range of its operands.
_OPERATORS = ("add", "sub", "mul", "int_floordiv", "eq", "ne", "ge", "gt", "le", "lt")
_PLAIN = (int, float, bool, type(None))


def _remembering(stock: Callable[..., SymNode]) -> Callable[..., SymNode]:
    results: dict[Any, Any] = {}

    def compute(self: SymNode, other: SymNode) -> SymNode:
        if type(other) is not SymNode or proxy_tensor.get_proxy_mode() is not None:
            return stock(self, other)
        environment = self.shape_env
        if (
            environment is None
            or environment._translation_validation_enabled
            or _logging._internal.GET_DTRACE_STRUCTURED
            or type(self._hint) not in _PLAIN
            or type(other._hint) not in _PLAIN
        ):
            return stock(self, other)
        key = (
            self.expr,
            other.expr,
            self._hint,
            other._hint,
            self.pytype,
            other.pytype,
            self._optimized_summation,
            other._optimized_summation,
        )
        known = results.get(key)
        if known is None:
            node = stock(self, other)
            if type(node) is SymNode and node.constant is None and type(node._hint) in _PLAIN:
                results[key] = (node._expr, node.pytype, node._hint, node._optimized_summation)
            return node
        expression, pytype, hint, summation = known
        return SymNode(
            expression,
            environment,
            pytype,
            _NO_HINT if hint is None else hint,
            optimized_summation=summation,
        )

    return compute


@contextlib.contextmanager
def remembered_sizes() -> Iterator[None]:
    """Remember what arithmetic and comparisons of symbolic sizes give."""
    with contextlib.ExitStack() as stack:
        for name in _OPERATORS:
            attribute = f"_{name}"
            stock = getattr(SymNode, attribute)
            stack.enter_context(replaced(SymNode, attribute, _remembering(stock)))
        yield
