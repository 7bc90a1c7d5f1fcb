"""Writes of several positions of a cache, in the form that Core ML's converter takes.

coremltools (9.0, `converters/mil/frontend/torch/ops.py`, `index_put`) turns `x[:, :, positions]`
into a slice of one element, so it fails for more than one position; `x[positions]` becomes a
scatter of any number of them. So the indexed dimension is moved to the front and back again.
"""

from __future__ import annotations

from typing import Any

import torch
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass

_INDEX_PUT = exir_ops.edge.aten.index_put.default
_PERMUTE = exir_ops.edge.aten.permute_copy.default


class ScatterAtFront(ExportPass):
    """Rewrites `index_put(x, [None, ..., positions], values)` for vectors of two positions or more.

    One position keeps its form, which the converter turns into a slice update that the neural
    engine runs.
    """

    def call_operator(
        self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], meta: Any
    ) -> Any:
        if op is not _INDEX_PUT or not _several_positions(args):
            return super().call_operator(op, args, kwargs, meta)
        x, indices, values, *rest = args
        rank, dim = _value(x).dim(), len(indices) - 1
        front = [dim, *(other for other in range(rank) if other != dim)]
        back = [front.index(other) for other in range(rank)]

        def permute(tensor: Any, order: list[int]) -> Any:
            return super(ScatterAtFront, self).call_operator(_PERMUTE, (tensor, order), {}, meta)

        moved = (permute(x, front), [indices[dim]], permute(values, front), *rest)
        written = super().call_operator(op, moved, kwargs, meta)
        return permute(written, back)


def _value(argument: Any) -> torch.Tensor:
    return argument.data if hasattr(argument, "data") else argument


def _several_positions(args: tuple[Any, ...]) -> bool:
    x, indices, values = args[:3]
    if len(indices) < 2 or any(index is not None for index in indices[:-1]):
        return False
    positions = _value(indices[-1])
    if positions.dim() != 1 or positions.dtype == torch.bool:
        return False
    one = isinstance(positions.shape[0], int) and positions.shape[0] == 1
    return not one and _value(values).dim() == _value(x).dim()
