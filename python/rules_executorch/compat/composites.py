"""What a composite operator gives on fake tensors, computed once for each kind of arguments.

Rests on `torch/export/exported_program.py` (`_override_composite_implicit_decomp`): while a graph
is decomposed, an operator that is kept whole is run in its parts on fake tensors to learn its
shape, each time it is called. For the operators of torchao that are a dozen others each.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses import FakeTensor, FakeTensorMode
from torch._subclasses.fake_tensor import in_kernel_invocation_manager
from torch.export import exported_program
from torch.fx.experimental.sym_node import _NO_HINT, SymNode
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from rules_executorch.compat.fake_results import Results
from rules_executorch.compat.patch import replaced


def _size(size: Any) -> Any:
    """An equal size that is another object: tracers tell sizes apart by identity."""
    if type(size) is int:
        return size
    node = size.node
    hint = _NO_HINT if node._hint is None else node._hint
    summation = node._optimized_summation
    return torch.SymInt(
        SymNode(node._expr, node.shape_env, int, hint, optimized_summation=summation)
    )


def _equal(mode: FakeTensorMode, tensor: FakeTensor) -> FakeTensor:
    """A new fake tensor with the layout of another."""
    guards = contextlib.nullcontext()
    if mode.shape_env is not None:
        guards = mode.shape_env.suppress_guards()
    with in_kernel_invocation_manager(mode), guards:
        meta = torch.empty_strided(
            tuple(map(_size, tensor.shape)),
            tuple(map(_size, tensor.stride())),
            dtype=tensor.dtype,
            device="meta",
        )
    return FakeTensor(mode, meta, tensor.device)


def _is_own(tensor: Any, mode: FakeTensorMode) -> bool:
    """Whether a result is a fake tensor that its layout tells all about, except for aliases."""
    if type(tensor) is not FakeTensor or tensor.fake_mode is not mode:
        return False
    if tensor.constant is not None or tensor.requires_grad or tensor.layout is not torch.strided:
        return False
    if tensor.is_conj() or tensor.is_neg() or tensor.is_quantized or tensor.is_nested:
        return False
    offset = tensor.storage_offset()
    sizes = [size for size in (*tensor.shape, *tensor.stride()) if type(size) is not int]
    if type(offset) is not int or offset or free_unbacked_symbols(sizes):
        return False
    return all(size.node.constant is None for size in sizes)


def _storages(values: Sequence[Any]) -> list[int]:
    return [v.untyped_storage()._cdata for v in values if isinstance(v, torch.Tensor)]


def _remembering(stock: Callable[..., Any], results: Results) -> Callable[..., Any]:
    known: dict[Hashable, list[FakeTensor]] = {}

    def run(mode: FakeTensorMode, operator: OpOverload, *args: Any, **kwargs: Any) -> Any:
        key = results.key_in(mode, operator, args, kwargs)
        if key is None:
            return stock(mode, operator, *args, **kwargs)
        if key in known:
            copies = tuple(_equal(mode, tensor) for tensor in known[key])
            return copies if len(operator._schema.returns) > 1 else copies[0]
        result = stock(mode, operator, *args, **kwargs)
        tensors = list(result) if type(result) is tuple else [result]
        if len(tensors) == len(operator._schema.returns) and all(
            _is_own(tensor, mode) for tensor in tensors
        ):
            storages = _storages(tensors)
            distinct = len(set(storages)) == len(storages)
            if distinct and not set(storages) & set(_storages([*args, *kwargs.values()])):
                known[key] = [_equal(mode, tensor) for tensor in tensors]
        return result

    return run


@contextlib.contextmanager
def remembered_composites() -> Iterator[None]:
    """Look the result of an operator kept whole up, and give a new fake tensor equal to it."""
    stock = exported_program.register_op_impl
    results = Results()

    def register(operator: OpOverload) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        return lambda run: stock(operator)(_remembering(run, results))

    with replaced(exported_program, "register_op_impl", register):
        yield
