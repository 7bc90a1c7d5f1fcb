"""What a delegate's program is, apart from the values of its weights.

Two programs with equal keys are the same graph over the same kinds of inputs: passes that do not
read the weights turn both into the same graph. Names are replaced by the order they first appear
in, so that which names are equal counts and what they are does not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable
from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    InputKind,
    SymIntArgument,
    TensorArgument,
)
from torch.fx import Node

# Meta that records where a node came from; it names layers, and passes of delegates ignore it.
_PROVENANCE = frozenset(
    {
        "delegation_tag",
        "desc",
        "eager_input_vals",
        "example_value",
        "from_node",
        "original_aten",
        "quantization_annotation",
        "seq_nr",
        "stack_trace",
        "tensor_meta",
        "xnn_partitioner_config",
    }
)
# Elements of a constant that is still compared by value.
_SMALL = 16
_LITERALS = (
    type(None),
    bool,
    int,
    str,
    bytes,
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
)


class UnknownStructure(Exception):
    """The program holds something a key cannot describe."""


@dataclasses.dataclass(frozen=True)
class Structure:
    """The key of a program and what differs between programs with the same key.

    Attributes:
        key: equal for programs that passes treat alike.
        targets: names in the state dict or the constants, one for each input that is stored.
        handles: distinct debug handles in the order of their first appearance.
        alive: objects the key knows by identity; keep them as long as the key.
    """

    key: Hashable
    targets: tuple[str, ...]
    handles: tuple[int, ...]
    alive: tuple[object, ...]


class _Describer:
    def __init__(self, program: ExportedProgram) -> None:
        self._program = program
        self._nodes = {node: index for index, node in enumerate(program.graph.nodes)}
        self._names: dict[str, int] = {}
        self._tensors: dict[int, int] = {}
        self.handles: dict[int, int] = {}
        self.targets: list[str] = []
        self.alive: dict[int, object] = {}

    def _identity(self, thing: object) -> int:
        self.alive[id(thing)] = thing
        return id(thing)

    def _name(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))

    def value(self, value: Any) -> Hashable:
        if isinstance(value, Node):
            return ("node", self._nodes[value])
        if isinstance(value, _LITERALS):
            return (type(value).__name__, value)
        if isinstance(value, float):
            return ("float", value.hex())
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            node = value.node
            return (type(value).__name__, str(node.expr), self._identity(node.shape_env))
        if isinstance(value, torch.Tensor):
            return self._fake(value)
        if isinstance(value, (list, tuple)):
            return (type(value).__name__, *map(self.value, value))
        if isinstance(value, dict):
            return ("dict", *((self.value(k), self.value(v)) for k, v in value.items()))
        raise UnknownStructure(f"value of type {type(value).__name__}")

    def _layout(self, tensor: torch.Tensor) -> tuple[Hashable, ...]:
        return (
            type(tensor).__name__,
            tensor.dtype,
            tuple(map(self.value, tensor.shape)),
            tuple(map(self.value, tensor.stride())),
            self.value(tensor.storage_offset()),
            tensor.device,
            tensor.requires_grad,
            isinstance(tensor, torch.nn.Parameter),
        )

    def _fake(self, tensor: torch.Tensor) -> Hashable:
        if not isinstance(tensor, FakeTensor):
            raise UnknownStructure("a real tensor in the graph")
        return (
            *self._layout(tensor),
            self._identity(tensor.fake_mode),
            self._constant(tensor.constant),
        )

    def _constant(self, tensor: torch.Tensor | None) -> Hashable:
        """The value a fake tensor is known to have, as lifted scalars are."""
        if tensor is None:
            return None
        if tensor.numel() > _SMALL or type(tensor) is not torch.Tensor:
            raise UnknownStructure("a large constant in the graph")
        return (*self._layout(tensor), repr(tensor.tolist()))

    def _stored(self, target: str) -> Hashable:
        place = "state" if target in self._program.state_dict else "constants"
        stored = self._program.state_dict if place == "state" else self._program.constants
        if target not in stored:
            raise UnknownStructure("an input that is stored nowhere")
        tensor = stored[target]
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            raise UnknownStructure(f"a stored {type(tensor).__name__}")
        if tensor.layout is not torch.strided:
            raise UnknownStructure("a stored tensor that is not strided")
        self.targets.append(target)
        alias = self._tensors.setdefault(id(tensor), len(self._tensors))
        return (place, alias, *self._layout(tensor))

    def _sources(self, meta: dict[str, Any]) -> Iterable[Hashable]:
        """Which source a node was decomposed from: source partitions group nodes by these."""
        for name, source in meta.get("source_fn_stack") or ():
            yield ("source", self._name(name), source)
        if "torch_fn" in meta:
            name, source = meta["torch_fn"]
            yield ("torch_fn", self._name(name), source)
        for name, source in (meta.get("nn_module_stack") or {}).values():
            yield ("module", self._name(name), source)

    def meta(self, node: Node) -> Hashable:
        if node.op == "placeholder" and "val" not in node.meta:
            raise UnknownStructure("an input without a value")
        # Passes look at whether this is there, not at what it is.
        described: list[Hashable] = ["example_value" in node.meta, *self._sources(node.meta)]
        for key, value in node.meta.items():
            if key in _PROVENANCE or key in ("source_fn_stack", "torch_fn", "nn_module_stack"):
                continue
            if key == "debug_handle":
                if type(value) is not int:
                    raise UnknownStructure("a debug handle that is not an integer")
                value = self.handles.setdefault(value, len(self.handles))
            described.append((key, self.value(value)))
        return tuple(described)

    def inputs(self) -> Iterable[Hashable]:
        for spec in self._program.graph_signature.input_specs:
            if spec.kind == InputKind.USER_INPUT:
                yield (spec.kind, self._argument(spec.arg))
            elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
                stored = self._stored(spec.target)
                yield (spec.kind, self._argument(spec.arg), spec.persistent, stored)
            else:
                raise UnknownStructure(f"an input of kind {spec.kind.name}")

    def outputs(self) -> Iterable[Hashable]:
        for spec in self._program.graph_signature.output_specs:
            target = None if spec.target is None else self.targets.index(spec.target)
            yield (spec.kind, self._argument(spec.arg), target)

    def _argument(self, argument: Any) -> Hashable:
        if isinstance(argument, ConstantArgument):
            return ("constant", self.value(argument.value))
        if isinstance(argument, (TensorArgument, SymIntArgument)):
            return type(argument).__name__
        raise UnknownStructure(f"an argument of type {type(argument).__name__}")

    def nodes(self) -> Iterable[Hashable]:
        for node in self._program.graph.nodes:
            if node.op == "get_attr" or node.op == "call_module":
                raise UnknownStructure("a graph with attributes")
            target = node.target if node.op == "call_function" else None
            yield (
                node.op,
                target,
                self.value(node.args),
                self.value(node.kwargs),
                tuple(self._nodes[user] for user in node.users),
                self.meta(node),
            )


def describe(program: ExportedProgram) -> Structure:
    """Describe a program without the values of its weights.

    Args:
        program: the edge program of one delegate.

    Raises:
        UnknownStructure: the program holds values, kinds of input or meta that no key covers.
    """
    if "args" in program.graph_module.meta:
        raise UnknownStructure("a graph with inputs of its own")
    describer = _Describer(program)
    try:
        key = (
            tuple(describer.inputs()),
            tuple(describer.outputs()),
            tuple(describer.nodes()),
        )
        hash(key)
    except (TypeError, ValueError, KeyError) as error:
        raise UnknownStructure(str(error)) from error
    return Structure(
        key, tuple(describer.targets), tuple(describer.handles), tuple(describer.alive.values())
    )
