"""Calls of lowered delegates on fake tensors, interpreted instead of rebuilt.

Rests on `torch/_higher_order_ops/executorch_call_delegate.py` (`call_delegate_cpu`): each pass
over a lowered graph turns the program of every delegate back into a module, with its weights and
guards, to learn the shapes of its outputs.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

from rules_executorch.compat.patch import replaced


def _arguments(program: ExportedProgram, given: tuple[Any, ...]) -> list[Any] | None:
    """What the graph of a program takes, or None where calling it is more than running the graph.

    Args:
        program: the program of a delegate.
        given: what it is called with, one value for each input of the user.
    """
    if any(spec.kind != OutputKind.USER_OUTPUT for spec in program.graph_signature.output_specs):
        return None
    rest = iter(given)
    arguments = []
    for spec in program.graph_signature.input_specs:
        if spec.kind == InputKind.USER_INPUT:
            arguments.append(next(rest, None))
        elif spec.target in program.state_dict:
            arguments.append(program.state_dict[spec.target])
        elif spec.target in program.constants:
            arguments.append(program.constants[spec.target])
        else:
            return None
    return arguments


# The package binds the operator of the same name over its module.
_MODULE = importlib.import_module("torch._higher_order_ops.executorch_call_delegate")


@contextlib.contextmanager
def interpreted_delegates() -> Iterator[None]:
    """Run the graph of a delegate as it is when only shapes are asked for."""
    stock = _MODULE.call_delegate_cpu

    def call(lowered_module: Any, *args: Any) -> Any:
        program = lowered_module.original_module
        plain = all(isinstance(arg, (FakeTensor, int, torch.SymInt)) for arg in args)
        inputs = len(program.graph_signature.user_inputs)
        arguments = _arguments(program, args) if plain and inputs == len(args) else None
        if arguments is None or not any(isinstance(arg, FakeTensor) for arg in args):
            return stock(lowered_module, *args)
        outputs = torch.fx.Interpreter(program.graph_module).run(*arguments)
        return pytree.tree_unflatten(outputs, program.call_spec.out_spec)

    with replaced(_MODULE, "call_delegate_cpu", call):
        yield
