"""Rewrites of a graph that backends declare.

They lie here and not beside the lowering, which runs them, since a backend names its own and
backends are below the lowering: so no import goes upwards. What is for one vendor alone is beside
that backend.

A function here loads its pass, and with it torch, when it is called: what a backend can is read
without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from executorch.exir import EdgeProgramManager
    from torch.export import ExportedProgram

    BeforePass = Callable[[ExportedProgram], object]
    AfterPass = Callable[[EdgeProgramManager, Mapping[str, Any]], object]


def drop_overwritten_buffers(program: ExportedProgram) -> None:
    """For partitioners that take mutable buffers over; see `drop_dead_state`."""
    from rules_executorch.backends.passes.overwritten_buffers import drop_dead_state

    drop_dead_state(program)


def spell_out_gelu(program: ExportedProgram) -> None:
    """For backends that do not heed `approximate="tanh"` of GELU; see `spell_out_tanh_gelu`."""
    from rules_executorch.backends.passes.tanh_gelu import spell_out_tanh_gelu

    spell_out_tanh_gelu(program)


def fuse_quantized_embeddings(edge: EdgeProgramManager, options: Mapping[str, Any]) -> None:
    """For backends whose programs look rows up with the runtime's kernels; `fuse_embeddings`."""
    from rules_executorch.backends.passes.quantized_embedding import fuse_embeddings

    fuse_embeddings(edge)
