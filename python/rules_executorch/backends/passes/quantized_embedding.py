"""Embeddings that look rows up in the quantized matrix and dequantize those alone.

torchao's graph dequantizes the whole matrix and then takes rows of it. The runtime has kernels
that do it the other way round: `quantized_decomposed::embedding_byte` and `embedding_4bit`, of
ExecuTorch's quantized kernels (`executorch/kernels/quantized/quantized.yaml`). A 4-bit matrix is
stored with two values in a byte, the even column in the high half, each plus 8, as
`executorch.exir.passes._quant_patterns_and_replacements` packs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from executorch.exir import EdgeProgramManager
    from torch.export import ExportedProgram

_DEQUANTIZE = "torchao::dequantize_affine"
_RANGES = {(-128, 127): "embedding_byte", (-8, 7): "embedding_4bit"}
"""Least and greatest value of a weight, and the operator for it."""


def pack_4bit(values: torch.Tensor) -> torch.Tensor:
    """Packs values of -8 to 7, int8 (rows, columns), into uint8 (rows, columns / 2)."""
    shifted = (values + 8).to(torch.uint8)
    return (shifted[:, 0::2] << 4) | shifted[:, 1::2]


def fuse_embeddings(edge: EdgeProgramManager) -> list[str]:
    """Replaces what the partitioners left of quantized embeddings by the kernels of the runtime.

    Args:
        edge: a program in the edge dialect, partitioned; changed in place.

    Returns:
        Names of the parameters that hold the matrices.
    """
    fused = []
    for method in edge.methods:
        fused += _fuse(edge.exported_program(method))
    return fused


def _fuse(program: ExportedProgram) -> list[str]:
    graph = program.graph_module.graph
    dequantized = [
        node
        for node in graph.nodes
        if hasattr(node.target, "_schema") and node.target._schema.name == _DEQUANTIZE
    ]
    if not dequantized:
        return []
    # Importing it registers the operators with torch.
    import executorch.exir.passes._quant_patterns_and_replacements  # noqa: F401
    from executorch.exir.dialects._ops import ops

    parameters = program.graph_signature.inputs_to_parameters
    fused = []
    for node in dequantized:
        values, _, scales, zeros, _, low, high = node.args[:7]
        lookups = [user for user in node.users if user.target is ops.edge.aten.embedding.default]
        names = [parameters.get(part.name) for part in (values, scales, zeros)]
        if len(lookups) != len(node.users) or None in names or (low, high) not in _RANGES:
            continue
        state = program.state_dict
        if state[names[2]].any():
            # torchao's symmetric schemes have no zero points; another layout stays as it is.
            continue
        operator = _RANGES[low, high]
        if operator == "embedding_4bit":
            packed = pack_4bit(state[names[0]].data)
            state[names[0]] = torch.nn.Parameter(packed, requires_grad=False)
            values.meta["val"] = values.meta["val"].new_empty(packed.shape, dtype=packed.dtype)
        target = getattr(ops.edge.quantized_decomposed, operator).default
        for lookup in lookups:
            with graph.inserting_before(lookup):
                arguments = (values, scales, None, low, high, lookup.args[1])
                call = graph.call_function(target, arguments)
            call.meta = dict(lookup.meta)
            lookup.replace_all_uses_with(call)
            graph.erase_node(lookup)
        graph.erase_node(node)
        if not zeros.users:
            _drop_parameter(program, zeros, names[2])
        fused.append(names[0])
    if fused:
        program.graph_module.recompile()
    return fused


def _drop_parameter(program: ExportedProgram, node: torch.fx.Node, name: str) -> None:
    signature = program.graph_signature
    signature.input_specs = [spec for spec in signature.input_specs if spec.target != name]
    program.state_dict.pop(name, None)
    program.graph_module.graph.erase_node(node)
