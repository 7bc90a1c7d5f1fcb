"""Bit sets answer as the sets of dependent nodes do."""

from __future__ import annotations

import itertools
import random

from executorch.exir.backend.canonical_partitioners.group_partitioner import (
    GroupBasedPartitioner,
    _DependencyViewer,
)
from torch.fx import Graph, GraphModule, Node
from torch.fx.passes.infra.partitioner import Partition
from torch.fx.passes.operator_support import create_op_support
from torch.nn import Module

from rules_executorch.compat import merging


def _random_module(seed: int) -> GraphModule:
    chosen = random.Random(seed)
    graph = Graph()
    nodes = [graph.placeholder(f"input_{index}") for index in range(3)]
    for _ in range(25):
        nodes.append(graph.call_function(max, tuple(chosen.sample(nodes, 2))))
    graph.output((nodes[-1], nodes[-2]))
    return GraphModule(Module(), graph)


def _calls(module: GraphModule) -> list[Node]:
    return [node for node in module.graph.nodes if node.op == "call_function"]


def test_dependent_nodes() -> None:
    for seed in range(5):
        module = _random_module(seed)
        stock, ours = _DependencyViewer(module), merging._Downstream(module)
        for node in module.graph.nodes:
            assert ours.downstreams_of(node) == stock.downstreams_of(node)
            assert ours.upstreams_of(node) == stock.upstreams_of(node)


def test_every_pair_of_partitions() -> None:
    support = create_op_support(lambda modules, node: node.op == "call_function")
    for seed in range(10):
        module = _random_module(seed)
        calls = _calls(module)
        random.Random(seed).shuffle(calls)
        groups = [calls[start : start + 2] for start in range(0, len(calls), 2)]
        partitions = {
            number: Partition(id=number, nodes=group) for number, group in enumerate(groups)
        }
        stock = GroupBasedPartitioner(module, support)
        ancestry = merging._Ancestry(module.graph)
        for first, second in itertools.combinations(partitions, 2):
            ours = ancestry.acyclic(
                (first, partitions[first].nodes), (second, partitions[second].nodes)
            )
            assert ours == stock._can_merge_partitions(first, second, partitions)


def test_proposed_partitions() -> None:
    support = create_op_support(lambda modules, node: node.op == "call_function")
    for seed in range(10):
        module = _random_module(seed)
        groups = [[node] for node in _calls(module) if len(node.users) != 2]

        def propose(module: GraphModule, groups: list[list[Node]]) -> list[list[str]]:
            proposed = GroupBasedPartitioner(
                module, support, allows_single_node_partition=True, node_groups=groups
            ).propose_partitions()
            return [[node.name for node in partition.nodes] for partition in proposed]

        stock = propose(module, groups)
        with merging.bitset_partitions():
            assert propose(module, groups) == stock
