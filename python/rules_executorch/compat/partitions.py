"""Cutting partitions out of a graph in time linear in the graph for each.

Rests on `executorch/exir/backend/backend_api.py` (`_create_partitions_in_graph_module`),
`executorch/exir/lowered_backend_module.py` (`create_submodule_from_nodes`) and
`torch/fx/passes/tools_common.py` (`legalize_graph`).
"""

from __future__ import annotations

import collections
import contextlib
import functools
import logging
import operator
from collections.abc import Iterator
from typing import Any

import torch
from executorch.exir import lowered_backend_module
from executorch.exir.backend import backend_api
from torch.fx import Graph, GraphModule, Node
from torch.fx.graph import _FindNodesLookupTable, _illegal_names, _name_regex, _Namespace
from torch.fx.passes.tools_common import legalize_graph

from rules_executorch.compat.patch import replaced

# The operators that `legalize_graph` moves ahead of others that become ready with them.
_EARLY = frozenset(
    {
        operator.add,
        operator.mul,
        operator.sub,
        operator.floordiv,
        operator.truediv,
        operator.mod,
        operator.le,
        operator.lt,
        operator.ge,
        operator.gt,
        operator.eq,
        operator.ne,
        torch.ops.aten.sym_constrain_range.default,
        torch.ops.aten.sym_constrain_range_for_size.default,
        torch.ops.aten._assert_async.msg,
        torch.ops.aten.scalar_tensor.default,
        torch.ops.aten._assert_scalar.default,
    }
)


def _order(graph: Graph) -> list[Node]:
    """The nodes in the order `legalize_graph` gives them.

    Raises:
        RuntimeError: the graph has a cycle.
    """
    waiting = {}
    ready: collections.deque[Node] = collections.deque()
    for node in graph.nodes:
        waiting[node] = len(node._input_nodes)
        if not node._input_nodes:
            ready.append(node)
    ordered = []
    while ready:
        node = ready.popleft()
        ordered.append(node)
        for user in node.users:
            waiting[user] -= 1
            if waiting[user] == 0:
                if user.op == "call_function" and user.target in _EARLY:
                    ready.appendleft(user)
                else:
                    ready.append(user)
    if len(ordered) < len(waiting):
        cyclic = [node for node, inputs in waiting.items() if inputs]
        raise RuntimeError(f"Input graph has cycles, unable to add {cyclic}")
    return ordered


@functools.cache
def _base_and_number(name: str) -> tuple[str, int | None] | None:
    """Split a node's name as a graph's namespace does; None if a namespace would rename it."""
    match = _name_regex.match(name)
    if match is None or name in _illegal_names:
        return None
    base, number = match.group(1, 2)
    return base, None if number is None else int(number)


def _namespace(ordered: list[Node]) -> _Namespace | None:
    """The namespace a new graph has after nodes are copied into it in order.

    Which names later nodes get depends on it. None if a copy would get another name.
    """
    namespace = _Namespace()
    counts = namespace._base_count
    for node in ordered:
        parts = _base_and_number(node.name)
        if parts is None:
            return None
        base, number = parts
        counts[base] = counts.get(base, 0) if number is None else number
    namespace._used_names = {node.name for node in ordered}
    namespace._obj_to_name = {node: node.name for node in ordered}
    return namespace


def _relink(graph: Graph, ordered: list[Node]) -> None:
    """Put nodes in order, with the users of each as if they had been created in that order."""
    # `Node.__setattr__` looks after names and targets only, and takes longer than all of this.
    set_field = object.__setattr__
    table = _FindNodesLookupTable()
    by_target: dict[tuple[str, int], dict[Node, None]] = {}
    previous = graph._root
    for index, node in enumerate(ordered):
        if previous._next is not node:
            set_field(previous, "_next", node)
        if node._prev is not previous:
            set_field(node, "_prev", previous)
        if node._sort_key != (index,):
            set_field(node, "_sort_key", (index,))
        node.users.clear()
        for used in node._input_nodes:
            used.users[node] = None
        # Operators hash in Python, so tables are found by the identity of the operator.
        op = node.op
        key = (op, id(node.target) if op == "call_function" else 0)
        same = by_target.get(key)
        if same is None:
            same = by_target[key] = table.table[table._key(node)]
        same[node] = None
        previous = node
    if previous._next is not graph._root:
        set_field(previous, "_next", graph._root)
        set_field(graph._root, "_prev", previous)
    graph._find_nodes_lookup_table = table


def _legalize_in_place(module: GraphModule) -> GraphModule:
    """`legalize_graph` without the copy: the same order, names and users on the same nodes.

    Raises:
        RuntimeError: the graph has a cycle.
    """
    graph = module.graph
    ordered = _order(graph)
    namespace = _namespace(ordered)
    if namespace is None:
        return legalize_graph(module)
    _relink(graph, ordered)
    graph._graph_namespace = namespace
    module.recompile()
    return module


@contextlib.contextmanager
def linear_partitions() -> Iterator[None]:
    """Sort the graph in place after each partition instead of copying it whole."""
    with replaced(lowered_backend_module, "legalize_graph", _legalize_in_place):
        yield


@contextlib.contextmanager
def unprinted_partitions() -> Iterator[None]:
    """Do not format the whole module for a debug message nobody receives.

    `_create_partitions_in_graph_module` and `_partition_and_lower_one_graph_module` build the
    message before `logging` can drop it.
    """

    def quiet(stock: Any) -> Any:
        @functools.wraps(stock)
        def partition(*args: Any, **kwargs: Any) -> Any:
            if logging.getLogger().isEnabledFor(logging.DEBUG):
                return stock(*args, **kwargs)
            with replaced(GraphModule, "__str__", GraphModule._get_name):
                return stock(*args, **kwargs)

        return partition

    with contextlib.ExitStack() as stack:
        for name in ("_create_partitions_in_graph_module", "_partition_and_lower_one_graph_module"):
            stack.enter_context(replaced(backend_api, name, quiet(getattr(backend_api, name))))
        yield
