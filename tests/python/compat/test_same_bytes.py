"""The patched pipeline writes byte for byte what the stock pipeline writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import programs
import pytest
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
    XnnpackDynamicallyQuantizedPartitioner,
    XnnpackPartitioner,
)
from executorch.exir import to_edge_transform_and_lower

from rules_executorch import compat
from rules_executorch.backends import find_backend


def _lower(exported: Any, partitioners: list[type]) -> bytes:
    edge = to_edge_transform_and_lower(exported, partitioner=[make() for make in partitioners])
    return edge.to_executorch().buffer


PATCHES = find_backend("xnnpack").patches
XNNPACK = [XnnpackPartitioner]
DYNAMIC = [XnnpackDynamicallyQuantizedPartitioner, XnnpackPartitioner]
CASES: dict[str, tuple[Callable[[], Any], list[type]]] = {
    "llama_static": (lambda: programs.llama(dynamic=False, tied=False), XNNPACK),
    "llama_dynamic_tied": (lambda: programs.llama(layers=3), XNNPACK),
    "llama_8da4w": (lambda: programs.llama(quantized=True, layers=1), DYNAMIC),
    "gemma3_sliding_window": (programs.gemma3, XNNPACK),
    "convolutions": (programs.convolutions, XNNPACK),
    "portable": (lambda: programs.llama(layers=1), []),
    "methods": (programs.methods, XNNPACK),
}


@pytest.mark.parametrize("case", CASES)
def test_same_bytes(case: str) -> None:
    export, partitioners = CASES[case]
    with torch.no_grad():
        exported = export()
        stock = _lower(exported, partitioners)
        with compat.patched_lowering(PATCHES if partitioners else ()) as report:
            fast = _lower(exported, partitioners)
    assert not report.skipped
    assert len(stock) == len(fast)
    assert stock == fast


def test_each_patch_alone_keeps_the_bytes() -> None:
    with torch.no_grad():
        exported = programs.methods()
        stock = _lower(exported, XNNPACK)
        for patch in (*compat.PATCHES, *PATCHES):
            with patch.apply():
                alone = _lower(exported, XNNPACK)
            assert alone == stock, patch.name
