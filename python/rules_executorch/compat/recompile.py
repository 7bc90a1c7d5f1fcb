"""Python code of graph modules, generated when somebody reads or runs it.

Rests on `torch/fx/graph_module.py`: `GraphModule.recompile` writes the graph as Python source and
compiles it. Passes, copies and partitions call it after every edit; almost nothing runs the code,
because passes interpret the graph.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from torch.fx.graph import PythonCode, _PyTreeCodeGen
from torch.fx.graph_module import GraphModule

from rules_executorch.compat.patch import replaced

_STOCK_RECOMPILE = GraphModule.recompile
_READ = ("forward", "_code", "_lineno_map", "_prologue_start")


class _OnRead:
    """A class attribute of one graph module that generates the code when it is read.

    Every graph module has a class of its own, so these attributes touch no other module. They
    outlive the context: a module left pending generates its code whenever that is.
    """

    def __init__(self, owner: weakref.ref[GraphModule], name: str) -> None:
        self._owner = owner
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        module = instance if instance is not None else self._owner()
        _generate(module)
        return getattr(instance if instance is not None else owner, self._name)

    def __set__(self, instance: Any, value: Any) -> None:
        _generate(instance)
        setattr(instance, self._name, value)


class _PendingCode:
    """Stands for the `PythonCode` that `recompile` returns; generates it on first use."""

    def __init__(self, module: GraphModule) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(_generate(self._module), name)


def _reducing(name: str) -> Callable[..., Any]:
    """A method that generates the code before the stock method of that name reads it."""

    def reduce(self: GraphModule, *args: Any) -> Any:
        _generate(self)
        return getattr(self, name)(*args)

    return reduce


_REDUCE = {name: _reducing(name) for name in ("__reduce__", "__reduce_package__")}


def is_pending(module: GraphModule) -> bool:
    """Whether the code of a graph module has yet to be generated."""
    return isinstance(vars(type(module)).get("forward"), _OnRead)


def _generate(module: GraphModule) -> PythonCode:
    cls = type(module)
    if is_pending(module):
        for name in (*_READ, *_REDUCE):
            delattr(cls, name)
    return _STOCK_RECOMPILE(module)


def _deferred(module: GraphModule) -> Any:
    if isinstance(module._graph._codegen, _PyTreeCodeGen):
        module._in_spec = module._graph._codegen.pytree_info.in_spec
        module._out_spec = module._graph._codegen.pytree_info.out_spec
    if not is_pending(module):
        cls, owner = type(module), weakref.ref(module)
        for name in _READ:
            setattr(cls, name, _OnRead(owner, name))
        for name, method in _REDUCE.items():
            setattr(cls, name, method)
    return _PendingCode(module)


@contextlib.contextmanager
def deferred_recompile() -> Iterator[None]:
    """Make `GraphModule.recompile` take note only; reading or calling the module does the work."""
    with replaced(GraphModule, "recompile", _deferred):
        yield
