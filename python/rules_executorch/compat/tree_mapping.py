"""Functions mapped over arguments without describing their structure first.

Rests on `torch/utils/_pytree.py`: `tree_map` flattens a tree into leaves and a description, and
builds a tree from both. The interpreters and modes of torch call it several times for each node,
on a tuple of a few tensors.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from executorch.exir.pass_base import _ExportPassBase
from torch._subclasses import FakeTensor
from torch.fx.immutable_collections import immutable_dict, immutable_list
from torch.utils import _pytree

from rules_executorch.compat.patch import replaced

_stock_map = _pytree.tree_map


def _walk(function: Callable[[Any], Any], tree: Any) -> Any:
    kind = type(tree)
    if kind is tuple:
        return tuple([_walk(function, child) for child in tree])
    if kind is list:
        return [_walk(function, child) for child in tree]
    if kind is immutable_list:
        return immutable_list([_walk(function, child) for child in tree])
    if kind is dict:
        return {key: _walk(function, child) for key, child in tree.items()}
    if kind is immutable_dict:
        return immutable_dict({key: _walk(function, child) for key, child in tree.items()})
    if kind in _pytree.SUPPORTED_NODES or isinstance(tree, tuple):
        return _stock_map(function, tree)
    return function(tree)


@contextlib.contextmanager
def direct_trees() -> Iterator[None]:
    """Map over tuples, lists and dictionaries by walking them, over all else as ever."""
    stock_named = _pytree.is_namedtuple_class
    named: dict[type, bool] = {}

    def tree_map(function: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
        if rests or is_leaf is not None:
            return _stock_map(function, tree, *rests, is_leaf=is_leaf)
        return _walk(function, tree)

    def is_namedtuple_class(cls: type) -> bool:
        known = named.get(cls)
        if known is None:
            known = named[cls] = stock_named(cls)
        return known

    with (
        replaced(_pytree, "tree_map", tree_map),
        replaced(_pytree, "is_namedtuple_class", is_namedtuple_class),
    ):
        yield


@contextlib.contextmanager
def direct_metadata() -> Iterator[None]:
    """Record a single fake tensor as a node's value without looking for tensors inside it."""
    tracer = _ExportPassBase.ExportTracer
    stock = tracer.set_metadata

    def set_metadata(self: Any, node: Any, value: Any) -> None:
        if isinstance(value, FakeTensor):
            node.meta["val"] = value
            node.meta["tensor_meta"] = None
        else:
            stock(self, node, value)

    with replaced(tracer, "set_metadata", set_metadata):
        yield
