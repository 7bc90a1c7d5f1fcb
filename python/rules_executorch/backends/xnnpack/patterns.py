"""Patterns that XNNPACK passes look for, exported only where they may be found.

Rests on `executorch/backends/xnnpack/_passes/convert_to_upsample_bilinear2d.py`,
`convert_to_sdpa.py` and `executorch/backends/xnnpack/partition/graphs/`: six small programs are
exported to be matched against every delegate. A pattern matches only graphs that have every
operator of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from executorch.backends.xnnpack._passes.convert_to_sdpa import ConvertToSDPAPass
from executorch.backends.xnnpack._passes.convert_to_upsample_bilinear2d import (
    ConvertToUpsampleBilinear2d,
)
from executorch.backends.xnnpack.partition.graphs import bilinear_2d, sdpa
from torch.fx import GraphModule

from rules_executorch.compat.patch import replaced

# Some of the operators of every pattern, by name.
UPSAMPLE = frozenset({"aten.upsample_bilinear2d.vec"})
ATTENTION = frozenset({"aten._softmax.default", "aten.bmm.default", "aten.where.self"})


def _has(module: GraphModule, operators: frozenset[str]) -> bool:
    names = {
        getattr(node.target, "__name__", None)
        for node in module.graph.nodes
        if node.op == "call_function"
    }
    return operators <= names


@contextlib.contextmanager
def needed_patterns() -> Iterator[None]:
    """Match the patterns against the graphs that have their operators, and none against others."""

    def guarded(
        stock: Callable[..., Any], owner: Any, name: str, none: Any, operators: frozenset[str]
    ) -> Callable[..., Any]:
        def call(self: Any, graph_module: GraphModule) -> Any:
            if _has(graph_module, operators):
                return stock(self, graph_module)
            with replaced(owner, name, lambda: none):
                return stock(self, graph_module)

        return call

    upsample, attention = ConvertToUpsampleBilinear2d, ConvertToSDPAPass
    find_upsample = guarded(upsample.call, bilinear_2d, "get_graphs_dict", {}, UPSAMPLE)
    find_attention = guarded(attention.call, sdpa, "get_graphs", [], ATTENTION)
    with (
        replaced(upsample, "call", find_upsample),
        replaced(attention, "call", find_attention),
    ):
        yield
