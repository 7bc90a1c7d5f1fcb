"""Walking a tree gives what flattening it gives."""

from __future__ import annotations

import collections
from typing import Any

import pytest
import torch
from torch.fx.immutable_collections import immutable_dict, immutable_list
from torch.utils import _pytree

from rules_executorch.compat.tree_mapping import direct_trees

_Pair = collections.namedtuple("_Pair", ["first", "second"])

TREES: list[Any] = [
    1,
    None,
    (),
    [],
    {},
    (1, [2, (3,)], {"b": 4, "a": (5,)}),
    immutable_list([1, immutable_list([2])]),
    immutable_dict({"b": 1, "a": immutable_list([2])}),
    [_Pair(1, [2]), (3,)],
    collections.OrderedDict([("b", 1), ("a", [2])]),
    collections.defaultdict(list, {"a": [1]}),
    collections.deque([1, (2,)], maxlen=3),
    (torch.Size([1, 2]), slice(1, 2, 3), "text"),
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_the_same_tree_in_the_same_order(tree: Any) -> None:
    def mapped() -> tuple[Any, list[Any]]:
        seen: list[Any] = []

        def visit(leaf: Any) -> Any:
            seen.append(leaf)
            return (leaf, "mapped")

        return _pytree.tree_map(visit, tree), seen

    stock, stock_seen = mapped()
    with direct_trees():
        ours, seen = mapped()
    assert (ours, seen) == (stock, stock_seen)

    def types(value: Any) -> Any:
        children = value.values() if isinstance(value, dict) else value
        leaf = isinstance(value, (str, int, slice)) or value is None
        inner = [] if leaf else map(types, children)
        return [type(value), *inner]

    assert types(ours) == types(stock)


def test_several_trees_and_leaves_of_ones_own() -> None:
    with direct_trees():
        assert _pytree.tree_map(lambda a, b: a + b, [1, (2,)], [3, (4,)]) == [4, (6,)]
        assert _pytree.tree_map(len, [(1, 2), (3,)], is_leaf=lambda x: type(x) is tuple) == [2, 1]
        assert _pytree.tree_map_only(int, lambda x: x + 1, (1, "a", [2.0])) == (2, "a", [2.0])
