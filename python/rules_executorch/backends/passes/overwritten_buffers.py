"""Removes buffers whose value never survives from one call to the next.

The static cache of transformers keeps a `cumulative_length` beside keys and values. The exportable
modules set it from the cache position before anything reads it, so what one call leaves there no
later call sees. Partitioners that take mutable buffers over do not expect a buffer that is written
and never read, and fail on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.export.graph_signature import InputKind, TensorArgument

if TYPE_CHECKING:
    from torch.export import ExportedProgram


def drop_dead_state(program: ExportedProgram) -> list[str]:
    """Turns each buffer that is overwritten before it is read into a local value.

    Args:
        program: in the form that `torch.export.export` gives, before functionalization; changed in
            place. A program with several methods that share buffers must not be given: another
            method may read what this one leaves.

    Returns:
        Names of the buffers that are gone.
    """
    signature = program.graph_signature
    placeholders = {
        node.name: node for node in program.graph.find_nodes(op="placeholder", sort=False)
    }
    order = {node: index for index, node in enumerate(program.graph.nodes)}
    dropped = []
    for spec in signature.input_specs:
        if spec.kind is not InputKind.BUFFER or not isinstance(spec.arg, TensorArgument):
            continue
        placeholder = placeholders[spec.arg.name]
        first = min(placeholder.users, key=order.__getitem__, default=None)
        if first is None or not _overwrites(first, placeholder):
            continue
        with program.graph.inserting_before(first):
            value = program.graph.call_function(torch.ops.aten.clone.default, (first.args[1],))
        value.meta = dict(first.meta)
        first.replace_all_uses_with(value)
        program.graph.erase_node(first)
        placeholder.replace_all_uses_with(value)
        program.graph.erase_node(placeholder)
        dropped.append(spec.target)
    if dropped:
        signature.input_specs = [
            spec for spec in signature.input_specs if spec.target not in dropped
        ]
        for name in dropped:
            program.state_dict.pop(name, None)
            program.constants.pop(name, None)
        program.graph_module.recompile()
    return dropped


def _overwrites(node: torch.fx.Node, buffer: torch.fx.Node) -> bool:
    """Whether a node replaces the whole value of a buffer by one of the same kind."""
    if node.target is not torch.ops.aten.copy_.default or node.args[0] is not buffer:
        return False
    source = node.args[1].meta["val"]
    kept = buffer.meta["val"]
    return source.shape == kept.shape and source.dtype == kept.dtype
