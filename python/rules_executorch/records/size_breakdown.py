"""What is largest in a program: layers by their weights, tensors by their planned memory.

Rests on the tensor specs that ExecuTorch's memory planning leaves in the graph
(`executorch.exir.tensor.TensorSpec`: `allocated_memory`, `mem_id`, `mem_offset`, `lifetime`).
"""

from __future__ import annotations

import collections
import dataclasses
import math
from typing import TYPE_CHECKING

import torch
from executorch.exir.delegate import executorch_call_delegate
from executorch.exir.tensor import TensorSpec

from rules_executorch.export.build import PREFIX
from rules_executorch.export.choices import SCHEMES
from rules_executorch.records.manifest import LargeLayer, LargeTensor

if TYPE_CHECKING:
    from torch.export import ExportedProgram

    from rules_executorch.export.signature import Signature

LISTED = 5


def largest_layers(signature: Signature) -> list[LargeLayer]:
    """The layers with most weights, largest first.

    Args:
        signature: of the export.

    Returns:
        Layers with the bytes of their weights as they are exported: a backend may store them
        otherwise. A tied weight counts for the layer that it is named after.
    """
    layers: collections.Counter[str] = collections.Counter()
    for tensor in signature.parameters:
        size = getattr(torch, tensor.dtype).itemsize * math.prod(tensor.sizes)
        layers[_layer(tensor.name)] += size
    for weight in signature.quantized:
        bits = SCHEMES[weight.scheme].bits * math.prod(weight.shape)
        layers[_layer(weight.name)] += -(-bits // 8)
    largest = sorted(layers.items(), key=lambda layer: (-layer[1], layer[0]))
    return [LargeLayer(name, size) for name, size in largest[:LISTED]]


def _layer(weight: str) -> str:
    return weight.rpartition(".")[0] or weight


def largest_tensors(program: ExportedProgram) -> list[LargeTensor]:
    """The tensors that take most at the step of a method that needs most memory, largest first.

    Args:
        program: of a method, with its memory planned.

    Returns:
        Tensors with what writes them and in whose code that is called, which is empty where a pass
        that made it did not say. A delegate is an operator too, `delegate`.
    """
    planned = _planned(program)
    change: collections.Counter[int] = collections.Counter()
    for (_, _, first, last), tensor in planned.items():
        change[first] += tensor.bytes
        change[last + 1] -= tensor.bytes
    held, most, at = 0, 0, 0
    for step in sorted(change):
        held += change[step]
        if held > most:
            most, at = held, step
    live = [tensor for (_, _, first, last), tensor in planned.items() if first <= at <= last]
    live.sort(key=lambda tensor: (-tensor.bytes, tensor.layer, tensor.operator))
    return live[:LISTED]


def _planned(program: ExportedProgram) -> dict[tuple[int, int, int, int], LargeTensor]:
    """Tensors by arena, offset, and first and last step; views of one are that one."""
    buffers = program.graph_signature.inputs_to_buffers
    planned: dict[tuple[int, int, int, int], LargeTensor] = {}
    for node in program.graph.nodes:
        spec = node.meta.get("spec")
        specs = spec if isinstance(spec, list | tuple) else [spec]
        for index, tensor in enumerate(specs):
            if not isinstance(tensor, TensorSpec) or tensor.mem_id is None:
                continue
            place = (tensor.mem_id, tensor.mem_offset, *tensor.lifetime)
            operator = _operator(node)
            found = planned.get(place)
            if found is None:
                found = planned[place] = LargeTensor(tensor.allocated_memory, "", "")
            if operator and not found.operator:
                layer = buffers.get(node.name) or _called_in(_source(node, index))
                planned[place] = dataclasses.replace(found, operator=operator, layer=layer)
    return planned


def _operator(node: torch.fx.Node) -> str:
    """Name of what writes a tensor; empty for what only hands it on."""
    if node.op == "placeholder":
        return "buffer"
    if node.target is executorch_call_delegate:
        return "delegate"
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return ""
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name


def _source(node: torch.fx.Node, index: int) -> torch.fx.Node:
    """What computes a result of a node: for a delegate, a node of the graph that it took."""
    if node.target is not executorch_call_delegate:
        return node
    lowered = getattr(node.graph.owning_module, node.args[0].target)
    results = lowered.original_module.graph.output_node().args[0]
    return results[index] if isinstance(results[index], torch.fx.Node) else node


def _called_in(node: torch.fx.Node) -> str:
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    return stack[-1][0].removeprefix(PREFIX) if stack else ""
