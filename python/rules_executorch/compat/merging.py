"""Whether two partitions may become one, decided on bit sets.

Rests on `executorch/exir/backend/canonical_partitioners/group_partitioner.py`
(`GroupBasedPartitioner`) and `torch/fx/passes/infra/partitioner.py` (`_DependencyViewer`). Both
keep, for every node, the set of all nodes that depend on it, which grows with the square of the
graph, and the former walks these sets and the graph for every pair of partitions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from executorch.exir.backend.canonical_partitioners import group_partitioner
from executorch.exir.backend.canonical_partitioners.group_partitioner import GroupBasedPartitioner
from torch.fx import Graph, GraphModule, Node
from torch.fx.passes.infra import partitioner

from rules_executorch.compat.patch import replaced


class _Downstream:
    """`_DependencyViewer` with one bit for each node; a set is made when it is asked for."""

    def __init__(self, graph_module: GraphModule) -> None:
        self._nodes = list(graph_module.graph.nodes)
        self._bits = {node: 1 << index for index, node in enumerate(self._nodes)}
        self._downstream: dict[Node, int] = {}
        for node in reversed(self._nodes):
            reached = 0
            for user in node.users:
                reached |= self._bits[user] | self._downstream[user]
            self._downstream[node] = reached

    def downstreams_of(self, node: Node) -> set[Node]:
        """The nodes that depend on a node, itself not included."""
        reached = self._downstream.get(node, 0)
        found = set()
        while reached:
            lowest = reached & -reached
            found.add(self._nodes[lowest.bit_length() - 1])
            reached ^= lowest
        return found

    def upstreams_of(self, node: Node) -> set[Node]:
        """The nodes that a node depends on, itself not included."""
        bit = self._bits[node]
        return {other for other, reached in self._downstream.items() if reached & bit}


class _Ancestry:
    """What each partition of a graph holds, feeds and depends on, as bit sets of nodes."""

    def __init__(self, graph: Graph) -> None:
        self._bits: dict[Node, int] = {}
        self._users: dict[Node, int] = {}
        self._ancestors: dict[Node, int] = {}
        for index, node in enumerate(graph.nodes):
            self._bits[node] = 1 << index
            ancestors = 0
            for used in node.all_input_nodes:
                ancestors |= self._bits[used] | self._ancestors[used]
            self._ancestors[node] = ancestors
        for node in graph.nodes:
            users = 0
            for user in node.users:
                users |= self._bits[user]
            self._users[node] = users
        self._partitions: dict[Any, tuple[int, int, int, int]] = {}

    def _masks(self, identifier: Any, nodes: Any) -> tuple[int, int, int, int]:
        """The number of nodes, and the sets of nodes, of their users and of their ancestors."""
        known = self._partitions.get(identifier)
        if known is not None and known[0] == len(nodes):
            return known
        members = users = ancestors = 0
        for node in nodes:
            members |= self._bits[node]
            users |= self._users[node]
            ancestors |= self._ancestors[node]
        self._partitions[identifier] = masks = (len(nodes), members, users, ancestors)
        return masks

    def acyclic(self, first: tuple[Any, Any], second: tuple[Any, Any]) -> bool:
        """Whether no path leaves the union of two partitions and comes back to it.

        Args:
            first: identifier and nodes of a partition, which only ever gains nodes.
            second: the same of the other.
        """
        _, members, users, ancestors = self._masks(*first)
        _, other_members, other_users, other_ancestors = self._masks(*second)
        outside = (users | other_users) & ~(members | other_members)
        return not outside & (ancestors | other_ancestors)


@contextlib.contextmanager
def bitset_partitions() -> Iterator[None]:
    """Keep dependencies as bit sets, and check a merge with a few operations on them.

    The stock check looks for a path from the union of two partitions back into it, once in the
    sets of dependent nodes and once in the graph; the bit sets are made from that same graph at
    the first merge, so one check answers both.
    """
    stock_merge = GroupBasedPartitioner._merge_partitions

    def merge(self: GroupBasedPartitioner, *args: Any, **kwargs: Any) -> Any:
        self._ancestry = _Ancestry(self.graph_module.graph)
        try:
            return stock_merge(self, *args, **kwargs)
        finally:
            del self._ancestry

    def can_merge(self: GroupBasedPartitioner, p1: Any, p2: Any, partitions_by_id: Any) -> bool:
        first, second = partitions_by_id[p1].nodes, partitions_by_id[p2].nodes
        return self._ancestry.acyclic((p1, first), (p2, second))

    with contextlib.ExitStack() as stack:
        for owner, name, value in (
            (partitioner, "_DependencyViewer", _Downstream),
            (group_partitioner, "_DependencyViewer", _Downstream),
            (GroupBasedPartitioner, "_merge_partitions", merge),
            (GroupBasedPartitioner, "_can_merge_partitions", can_merge),
        ):
            stack.enter_context(replaced(owner, name, value))
        yield
