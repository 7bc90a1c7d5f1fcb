"""Where two `.ptd` files differ: the tensors."""

from __future__ import annotations

from collections.abc import Iterator

from rules_executorch.program.compare.data import changed_bytes, few_lines
from rules_executorch.program.info import DataTensor
from rules_executorch.program.inspect import ITEM_BYTES
from rules_executorch.program.ptd import OpenedData, open_data


def compare_data(first: str, second: str) -> list[str]:
    """Compares two data files.

    Args:
        first, second: paths of `.ptd` files.

    Returns:
        One clause per difference, without a full stop; empty if they differ in nothing that a
        program reads.

    Raises:
        UserError: a file is not a data file.
    """
    with open_data(first) as one, open_data(second) as other:
        found = [*_absent(one, other, "first"), *_absent(other, one, "second")]
        changed = [
            line
            for name, tensor in one.tensors.items()
            if name in other.tensors
            for line in _tensor(tensor, other.tensors[name], one, other)
        ]
        return [*found, *few_lines(changed, "tensors")]


def _absent(one: OpenedData, other: OpenedData, which: str) -> Iterator[str]:
    lines = [
        f"tensor `{name}` is in the {which} only"
        for name in one.tensors
        if name not in other.tensors
    ]
    yield from few_lines(lines, "tensors")


def _tensor(
    tensor: DataTensor, twin: DataTensor, one: OpenedData, other: OpenedData
) -> Iterator[str]:
    if (tensor.dtype, tensor.shape) != (twin.dtype, twin.shape):
        yield (
            f"tensor `{tensor.name}` is {tensor.dtype} {tensor.shape} in the first and "
            f"{twin.dtype} {twin.shape} in the second"
        )
        return
    data, other_data = one.contents(tensor.name), other.contents(tensor.name)
    if data != other_data:
        item = ITEM_BYTES.get(tensor.dtype or "", 1)
        yield f"tensor `{tensor.name}`: {changed_bytes(data, other_data, item)}"
