"""What an operator gives on fake tensors, computed once for each kind of arguments.

Rests on `executorch/exir/pass_base.py`: every `ExportPass` interprets the whole graph on fake
tensors through `torch.fx.Interpreter`, node by node, and builds the same fake tensors as the pass
before it. `torch/_subclasses/fake_tensor.py` remembers their sizes, but not the tensors.

An operator that is a function of its arguments gives equal tensors for tensors of equal layout.
Tensors of equal layout therefore form a class, and a node is looked up by its operator and the
classes of its arguments. Nodes with equal results then share one fake tensor; the inputs of a
delegate, which backends may trace again, are made distinct.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator
from typing import Any

import torch
from executorch.exir.backend import backend_api
from executorch.exir.dialects.edge._ops import EdgeOpOverload
from torch._ops import OpOverload
from torch._subclasses import FakeTensor, FakeTensorMode
from torch.fx import GraphModule, Interpreter
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from rules_executorch.compat.patch import replaced

_LITERALS = frozenset(
    {int, bool, str, type(None), torch.dtype, torch.device, torch.memory_format, torch.layout}
)
_CLASS = "_rules_executorch_class"


class _Undescribed(Exception):
    """An argument that is not a literal, a size or a plain fake tensor."""


def _is_function(operator: OpOverload) -> bool:
    """Whether an operator changes nothing and its result follows from its arguments' layout."""
    unsuitable = {
        torch.Tag.data_dependent_output,
        torch.Tag.dynamic_output_shape,
        torch.Tag.inplace_view,
        torch.Tag.nondeterministic_seeded,
    }
    # A strided view depends on the size of the storage behind its argument.
    return (
        not operator._schema.is_mutable
        and not unsuitable & set(operator.tags)
        and "as_strided" not in operator._schema.name
    )


class Results:
    """Results by operator and kind of arguments."""

    def __init__(self) -> None:
        self._functions: dict[OpOverload, bool] = {}
        self._classes: dict[Hashable, int] = {}
        self._known: dict[Hashable, Any] = {}
        self._alive: dict[int, object] = {}

    def _identity(self, thing: object) -> int:
        self._alive[id(thing)] = thing
        return id(thing)

    def _size(self, size: Any) -> Hashable:
        if type(size) is int:
            return size
        return (size.node.expr, self._identity(size.node.shape_env))

    def _tensor(self, tensor: FakeTensor, mode: FakeTensorMode) -> int:
        if tensor.fake_mode is not mode or tensor.constant is not None:
            raise _Undescribed
        known = getattr(tensor, _CLASS, None)
        if known is not None and known[0] is self and known[1] == tensor.requires_grad:
            return known[2]
        if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
            raise _Undescribed
        layout = (
            self._identity(mode),
            tensor.dtype,
            tensor.device,
            tuple(map(self._size, tensor.shape)),
            tuple(map(self._size, tensor.stride())),
            self._size(tensor.storage_offset()),
            tensor.requires_grad,
            tensor.is_conj(),
            tensor.is_neg(),
            tensor.is_inference(),
        )
        number = self._classes.setdefault(layout, len(self._classes))
        setattr(tensor, _CLASS, (self, tensor.requires_grad, number))
        return number

    def _describe(self, value: Any, mode: FakeTensorMode) -> Hashable:
        kind = type(value)
        if kind in _LITERALS:
            return (kind, value)
        if isinstance(value, FakeTensor):
            return self._tensor(value, mode)
        if isinstance(value, (list, tuple)):
            return ("sequence", *(self._describe(item, mode) for item in value))
        if kind is float:
            return (kind, value.hex())
        if kind is torch.SymInt:
            return (kind, self._size(value))
        raise _Undescribed

    def key(self, target: Any, args: Any, kwargs: Any) -> Hashable | None:
        """What a call is remembered by, or None if it must run."""
        operator = target._op if isinstance(target, EdgeOpOverload) else target
        if not isinstance(operator, OpOverload):
            return None
        modes = _get_current_dispatch_mode_stack()
        if len(modes) != 1 or not isinstance(modes[0], FakeTensorMode):
            return None
        return self.key_in(modes[0], operator, args, kwargs)

    def key_in(
        self, mode: FakeTensorMode, operator: OpOverload, args: Any, kwargs: Any
    ) -> Hashable | None:
        """What a call in a mode is remembered by, or None if it must run."""
        if operator not in self._functions:
            self._functions[operator] = _is_function(operator)
        if not self._functions[operator]:
            return None
        try:
            arguments = self._describe(args, mode)
            options = tuple((name, self._describe(value, mode)) for name, value in kwargs.items())
        except _Undescribed:
            return None
        dispatcher = torch._C._dispatch_tls_is_dispatch_key_included(
            torch._C.DispatchKey.PythonDispatcher
        )
        return (operator, torch.is_grad_enabled(), dispatcher, arguments, options)

    def find(self, key: Hashable) -> Any:
        """What a call gave, in a container of its own, or None."""
        known = self._known.get(key)
        return list(known) if isinstance(known, list) else known

    def keep(self, key: Hashable, result: Any, args: Any) -> None:
        """Remember a result of plain fake tensors that are not arguments passed through."""
        tensors = result if isinstance(result, (list, tuple)) else [result]
        given = {id(value) for value in args}
        if type(result) in (list, tuple) or isinstance(result, FakeTensor):
            if all(
                isinstance(tensor, FakeTensor)
                and tensor.constant is None
                and id(tensor) not in given
                for tensor in tensors
            ):
                self._known[key] = list(result) if isinstance(result, list) else result


def _separate_inputs(module: GraphModule) -> None:
    """Give each input of a graph a fake tensor of its own."""
    seen: set[int] = set()
    for node in module.graph.nodes:
        value = node.meta.get("val")
        if node.op != "placeholder" or not isinstance(value, FakeTensor):
            continue
        if id(value) in seen:
            guards = contextlib.nullcontext()
            if value.fake_mode.shape_env is not None:
                guards = value.fake_mode.shape_env.suppress_guards()
            with value.fake_mode, guards:
                node.meta["val"] = torch.empty_strided(
                    value.shape,
                    value.stride(),
                    dtype=value.dtype,
                    device=value.device,
                    requires_grad=value.requires_grad,
                )
        seen.add(id(node.meta["val"]))


@contextlib.contextmanager
def remembered_results() -> Iterator[None]:
    """Look results up instead of computing them when a pass interprets a graph."""
    results = Results()
    stock_call = Interpreter.call_function
    stock_create = backend_api.create_exported_program_from_submodule

    def call_function(self: Any, target: Any, args: Any, kwargs: Any) -> Any:
        key = results.key(target, args, kwargs) if type(self) is Interpreter else None
        if key is None:
            return stock_call(self, target, args, kwargs)
        result = results.find(key)
        if result is None:
            result = stock_call(self, target, args, kwargs)
            results.keep(key, result, args)
        return result

    def create(submodule: GraphModule, *args: Any, **kwargs: Any) -> Any:
        _separate_inputs(submodule)
        return stock_create(submodule, *args, **kwargs)

    with (
        replaced(Interpreter, "call_function", call_function),
        replaced(backend_api, "create_exported_program_from_submodule", create),
    ):
        yield
