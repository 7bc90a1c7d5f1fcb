"""Quantization whose ranges come from running the model: int8 activations and weights.

The backend's quantizer annotates the graph, observers watch the inputs that it is run on, and the
graph is exported again with the ranges they saw (torchao's PT2E flow,
`torchao.quantization.pt2e.quantize_pt2e`). It needs the weights, so it belongs to the lowering.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from rules_executorch.action.progress import Progress
from rules_executorch.common.errors import UserError
from rules_executorch.export.build import PREFIX
from rules_executorch.lower.calibration_source import CalibrationSource, FileSamples, RandomSamples

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torchao.quantization.pt2e.quantizer import Quantizer

    from rules_executorch.export.signature import DynamicDim, Signature

RANDOM_SAMPLES = 8
_LENGTH = 3
"""Positions of a sequence whose length varies: with one it would be taken for a constant."""
_SEED = 0


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Inputs to calibrate with.

    Attributes:
        samples: keyword arguments of each call.
        source: for the manifest.
    """

    samples: list[dict[str, torch.Tensor]]
    source: CalibrationSource


def read_calibration(path: str, signature: Signature) -> Calibration:
    """Reads inputs from a safetensors file.

    Args:
        path: holds a tensor for each input of `forward`, by its name: the input's dtype, and its
            shape after a first dimension that counts the samples.
        signature: of the export.

    Raises:
        UserError: an input is missing, unknown, or of another dtype or shape.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    inputs = _inputs(signature)
    described = "; ".join(f"{n}: {d} (samples, {', '.join(map(str, s))})" for n, d, s in inputs)
    instead = f"Write a safetensors file with {described}."
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise UserError(
            f"The calibration file {path} is not readable: {error}.", instead=instead
        ) from error
    names = {name for name, _, _ in inputs}
    if set(tensors) != names:
        raise UserError(
            f"The calibration file {path} holds {', '.join(sorted(tensors)) or 'nothing'}, and the "
            f"inputs are {', '.join(sorted(names))}.",
            instead=instead,
        )
    counts = {tensor.shape[0] if tensor.dim() else 0 for tensor in tensors.values()}
    for name, dtype, shape in inputs:
        tensor = tensors[name]
        if str(tensor.dtype) != f"torch.{dtype}" or list(tensor.shape[1:]) != shape:
            raise UserError(
                f"{name} of the calibration file {path} is {str(tensor.dtype)[6:]} "
                f"{list(tensor.shape)}.",
                instead=instead,
            )
    if len(counts) != 1 or not counts.issuperset({max(counts)}) or max(counts) == 0:
        raise UserError(
            f"The calibration file {path} has no samples, or another number for each input.",
            instead=instead,
        )
    (count,) = counts
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    samples = [{name: tensors[name][i] for name in sorted(names)} for i in range(count)]
    return Calibration(samples, FileSamples(count, digest))


def random_calibration(signature: Signature) -> Calibration:
    """Makes seeded random inputs: enough to lower and test with, not to ship.

    A sequence whose length varies has 3 positions, or as many as it may. Floating-point inputs are
    normal with mean 0 and deviation 1, as normalized images are; token ids are uniform over the
    vocabulary, positions count up, masks keep everything, and other integers are 0.
    """
    generator = torch.Generator().manual_seed(_SEED)
    vocabulary = signature.vocab_size or 1
    lengths = {name: min(_LENGTH, dim.max) for name, dim in signature.dynamic_dims.items()}

    def make(name: str, dtype: str, shape: list[int]) -> torch.Tensor:
        if dtype != "int64":
            return torch.randn(shape, generator=generator).to(getattr(torch, dtype))
        if name == "cache_position":
            return torch.arange(shape[0])
        if name == "attention_mask":
            return torch.ones(shape, dtype=torch.int64)
        if name != "input_ids":
            # What else a model looks up has a table of its own, whose size is not known here.
            return torch.zeros(shape, dtype=torch.int64)
        return torch.randint(0, vocabulary, shape, generator=generator)

    inputs = [
        (n, d, [lengths[i] if isinstance(i, str) else i for i in s])
        for n, d, s in _inputs(signature)
    ]
    samples = [{name: make(name, d, s) for name, d, s in inputs} for _ in range(RANDOM_SAMPLES)]
    return Calibration(samples, RandomSamples(RANDOM_SAMPLES, _SEED))


@dataclasses.dataclass(frozen=True)
class Quantized:
    """A program after the backend's quantizer.

    Attributes:
        program: of the same inputs and outputs, with the quantized operators spelled out.
        layers: names of the layers whose weights it quantized, and the operator of each.
        skipped: names of the other layers that have weights, and the operator of each.
    """

    program: ExportedProgram
    layers: dict[str, str]
    skipped: dict[str, str]


def _keep_integers(module: torch.fx.GraphModule) -> None:
    """Makes tensors of the numbers that are added to integers or multiplied with them.

    Quantizers make float32 tensors of all such numbers (`_convert_scalars_to_attrs` of executorch's
    XNNPACK quantizer), and positions that became floating-point are no indices any more.
    """
    aten = torch.ops.aten
    for target in (aten.add.Tensor, aten.mul.Tensor):
        for node in module.graph.find_nodes(op="call_function", target=target):
            dtype = node.meta["val"].dtype
            if dtype.is_floating_point:
                continue
            for index, value in enumerate(node.args):
                if isinstance(value, int):
                    with module.graph.inserting_before(node):
                        number = module.graph.call_function(
                            aten.full.default, ([], value), {"dtype": dtype}
                        )
                    node.update_arg(index, number)
    module.recompile()


def quantize_program(
    program: ExportedProgram,
    quantizer: Quantizer,
    samples: Sequence[Mapping[str, torch.Tensor]],
    dynamic_dims: Mapping[str, DynamicDim] | None = None,
    progress: Progress | None = None,
) -> Quantized:
    """Quantizes a program whose weights are bound.

    Args:
        program: its buffers keep their values.
        quantizer: the backend's.
        samples: inputs to run it on. One of any values is enough where the ranges of activations
            are found as the program runs.
        dynamic_dims: of the signature: name of each dimension that varies, to its `max`.
        progress: is told of the stages.
    """
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    progress = progress or Progress()
    progress.stage("calibrate", len(samples))
    module = program.module(check_guards=False)
    layers = _unquantized(module.graph)
    _keep_integers(module)
    state = {name: buffer.clone() for name, buffer in module.named_buffers()}
    module = prepare_pt2e(module, quantizer)
    for sample in samples:
        module(**sample)
        progress.step()
    for name, buffer in module.named_buffers():
        if name in state:
            # A cache, which the samples have written to.
            buffer.copy_(state[name])
    progress.stage("quantize the program")
    converted = convert_pt2e(module)
    left = _unquantized(converted.graph)
    exported = torch.export.export(
        converted,
        (),
        kwargs=dict(samples[0]),
        dynamic_shapes=_dynamic_shapes(program, dynamic_dims or {}),
        strict=True,
    )
    return Quantized(
        exported,
        dict(layer for node, layer in layers.items() if node not in left),
        dict(layer for node, layer in layers.items() if node in left),
    )


def _dynamic_shapes(
    program: ExportedProgram, dims: Mapping[str, DynamicDim]
) -> dict[str, dict[int, Any]] | None:
    """The dimensions of the inputs that vary; a program has one such dimension or none."""
    if not dims:
        return None
    ((name, bounds),) = dims.items()
    dim = torch.export.Dim(name, max=bounds.max)
    values = {node.name: node.meta["val"] for node in program.graph.find_nodes(op="placeholder")}
    return {
        user: {
            axis: dim for axis, size in enumerate(values[user].shape) if not isinstance(size, int)
        }
        for user in program.graph_signature.user_inputs
    }


def _unquantized(graph: torch.fx.Graph) -> dict[str, tuple[str, str]]:
    """The layers whose weights are stored as they are: node, to the layer and its operator."""
    aten = torch.ops.aten
    places = {aten.addmm: 2, aten.linear: 1, aten.convolution: 1}
    places |= {getattr(aten, f"conv{n}d"): 1 for n in (1, 2, 3)}
    places |= {getattr(aten, f"conv_transpose{n}d"): 1 for n in (1, 2, 3)}
    found = {}
    for node in graph.nodes:
        packet = getattr(node.target, "overloadpacket", None)
        if node.op != "call_function" or packet not in places:
            continue
        weight = node.args[places[packet]]
        if weight.op == "get_attr" and not weight.target.startswith("_frozen_param"):
            found[node.name] = (_layer(node, weight.target), str(packet).split(".")[-1])
    return found


def _layer(node: torch.fx.Node, weight: str) -> str:
    """Name of the module that a node is of; without one, of its weight's, which may be tied."""
    modules = list(node.meta.get("nn_module_stack", {}).values())
    name = modules[-1][0] if modules else weight.rpartition(".")[0]
    return name.removeprefix(PREFIX)


def _inputs(signature: Signature) -> list[tuple[str, str, list[int | str]]]:
    return [(tensor.name, tensor.dtype, list(tensor.shape)) for tensor in signature.forward.inputs]
