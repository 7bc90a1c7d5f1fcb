"""The tensors of a checkpoint in the place of an exported program's parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from rules_executorch.export.build import DTYPES, PREFIX
from rules_executorch.export.quantize import quantize_weight

if TYPE_CHECKING:
    from torch.export import ExportedProgram

    from rules_executorch.checkpoint.stored_weights import Weights
    from rules_executorch.export.signature import Signature


def bind_weights(program: ExportedProgram, signature: Signature, weights: Weights) -> None:
    """Puts a checkpoint's tensors in the place of a program's parameters.

    Args:
        program: from `export.pt2.read_program`; changed in place.
        signature: what the export wrote beside it.
        weights: the checkpoint. Tensors of the program's dtype stay mapped; others are converted.

    Raises:
        UserError: a parameter is missing or has another shape.
    """
    wanted = {tensor.name: tensor.sizes for tensor in signature.parameters}
    sources = {}
    for weight in signature.quantized:
        # A layer that lost its tie when it was quantized still takes its values from the other.
        source = signature.ties.get(weight.name, weight.name)
        sources[weight.name] = source
        wanted[source] = tuple(weight.shape)
    found = weights.resolve(wanted, tied=signature.ties)
    state = program.state_dict
    parameters = set(program.graph_signature.parameters)

    def put(name: str, value: torch.Tensor) -> None:
        if PREFIX + name in parameters:
            value = torch.nn.Parameter(value, requires_grad=False)
        state[PREFIX + name] = value

    for tensor in signature.parameters:
        name = tensor.name
        source = weights.tensor(found[name])
        value = source.to(getattr(torch, tensor.dtype))
        put(name, value)
        if value is not source:
            weights.release(found[name])
    for weight in signature.quantized:
        name = found[sources[weight.name]]
        parts = quantize_weight(weights.tensor(name).to(DTYPES[signature.dtype]), weight)
        # What was made of it is kept, so that source and result need not fit together.
        weights.release(name)
        for name, part in zip(weight.parts, parts, strict=True):
            put(name, part)
