"""Quantization whose ranges come from running the model: int8 activations and weights.

The backend's quantizer annotates the graph, observers watch the inputs that it is run on, and the
graph is exported again with the ranges they saw (torchao's PT2E flow,
`torchao.quantization.pt2e.quantize_pt2e`). It needs the weights, so it belongs to the lowering.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from rules_executorch.errors import UserError
from rules_executorch.progress import Progress

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torchao.quantization.pt2e.quantizer import Quantizer

RANDOM_SAMPLES = 8
_SEED = 0


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Inputs to calibrate with.

    Attributes:
        samples: keyword arguments of each call.
        source: for the manifest: `kind` (`file` or `random`), `samples`, and the file's `sha256`
            or the `seed`.
    """

    samples: list[dict[str, torch.Tensor]]
    source: dict[str, Any]


def read_calibration(path: str, signature: Mapping[str, Any]) -> Calibration:
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
    return Calibration(samples, {"kind": "file", "samples": count, "sha256": digest})


def random_calibration(signature: Mapping[str, Any]) -> Calibration:
    """Makes seeded random inputs: enough to lower and test with, not to ship.

    Floating-point inputs are normal with mean 0 and deviation 1, as normalized images are; token
    ids are uniform over the vocabulary, positions count up, and masks keep everything.
    """
    generator = torch.Generator().manual_seed(_SEED)
    vocabulary = signature["vocab_size"] or 1

    def make(name: str, dtype: str, shape: list[int]) -> torch.Tensor:
        if dtype != "int64":
            return torch.randn(shape, generator=generator).to(getattr(torch, dtype))
        if name == "cache_position":
            return torch.arange(shape[0])
        if name == "attention_mask":
            return torch.ones(shape, dtype=torch.int64)
        return torch.randint(0, vocabulary, shape, generator=generator)

    inputs = _inputs(signature)
    samples = [{name: make(name, d, s) for name, d, s in inputs} for _ in range(RANDOM_SAMPLES)]
    return Calibration(samples, {"kind": "random", "samples": RANDOM_SAMPLES, "seed": _SEED})


def quantize_program(
    program: ExportedProgram,
    quantizer: Quantizer,
    calibration: Calibration,
    progress: Progress | None = None,
) -> ExportedProgram:
    """Quantizes a program whose weights are bound.

    Args:
        program: of fixed shapes.
        quantizer: the backend's.
        calibration: inputs to run it on.
        progress: is told of the stages.

    Returns:
        A program of the same inputs and outputs, with the quantized operators spelled out.
    """
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    progress = progress or Progress()
    progress.stage("calibrate", len(calibration.samples))
    module = prepare_pt2e(program.module(check_guards=False), quantizer)
    for sample in calibration.samples:
        module(**sample)
        progress.step()
    progress.stage("quantize the program")
    converted = convert_pt2e(module)
    return torch.export.export(converted, (), kwargs=calibration.samples[0], strict=True)


def _inputs(signature: Mapping[str, Any]) -> list[tuple[str, str, list[int]]]:
    return [
        (tensor["name"], tensor["dtype"], list(tensor["shape"]))
        for tensor in signature["methods"]["forward"]["inputs"]
    ]
