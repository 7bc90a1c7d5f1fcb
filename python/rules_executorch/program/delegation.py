"""Which operators of a lowered graph delegates run."""

from __future__ import annotations

import collections
import dataclasses
from typing import TYPE_CHECKING, Any

import torch
from executorch.exir.delegate import executorch_call_delegate
from executorch.exir.lowered_backend_module import get_lowered_submodules

if TYPE_CHECKING:
    from torch.export import ExportedProgram


@dataclasses.dataclass
class Delegation:
    """Operators of one method, by who runs them.

    Attributes:
        delegates: backend, as the runtime names it, to its number of delegates.
        delegated: operator to the number of its calls inside delegates.
        undelegated: operator to the number of its calls outside, which kernels of the runtime run.
    """

    delegates: dict[str, int] = dataclasses.field(default_factory=dict)
    delegated: dict[str, int] = dataclasses.field(default_factory=dict)
    undelegated: dict[str, int] = dataclasses.field(default_factory=dict)

    def share(self) -> float:
        """Delegated calls over all calls, 0 to 1."""
        inside, outside = sum(self.delegated.values()), sum(self.undelegated.values())
        return inside / (inside + outside) if inside + outside else 0.0


def count_delegation(program: ExportedProgram) -> Delegation:
    """Counts the operators of an edge program; size computations and `getitem` do not count."""
    delegates: collections.Counter[str] = collections.Counter()
    inside: collections.Counter[str] = collections.Counter()
    for _, module, _ in get_lowered_submodules(program.graph_module):
        delegates[module.backend_id] += 1
        inside.update(_operators(module.original_module.graph))
    return Delegation(
        dict(sorted(delegates.items())),
        dict(sorted(inside.items())),
        dict(sorted(collections.Counter(_operators(program.graph_module.graph)).items())),
    )


def copies(program: ExportedProgram, parameter: str) -> list[str]:
    """Where a lowered program stores a parameter: once for each place.

    Args:
        program: an edge program after delegation.
        parameter: its name in the program.

    Returns:
        `constants` if kernels of the runtime read it, and each backend whose delegates hold it. A
        backend stores equal data of its delegates once.
    """
    places = set()
    for _, module, _ in get_lowered_submodules(program.graph_module):
        if parameter in module.original_module.graph_signature.inputs_to_parameters.values():
            places.add(module.backend_id)
    if parameter in program.graph_signature.inputs_to_parameters.values():
        places.add("constants")
    return sorted(places)


def _operators(graph: torch.fx.Graph) -> list[str]:
    return [
        _name(node.target)
        for node in graph.nodes
        if node.op == "call_function"
        and node.target is not executorch_call_delegate
        and hasattr(node.target, "_schema")
        and not str(node.target).startswith(("aten.sym_", "aten._assert"))
    ]


def _name(target: Any) -> str:
    return target._schema.name + (
        f".{target._schema.overload_name}" if target._schema.overload_name else ""
    )
