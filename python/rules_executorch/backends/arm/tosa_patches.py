"""Partitions of TOSA and Ethos-U programs in the order of the graph.

Rests on `executorch/backends/arm/tosa/partitioner.py`. Its tags and components are sets, so
delegates are numbered in the order of hashes and of memory, which differs from run to run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator
from typing import Any

import torch
from executorch.backends.arm.tosa import partitioner

from rules_executorch.compat.patch import replaced


def _number(tag: str) -> tuple[int, str]:
    digits = re.search(r"\d+$", tag)
    return (int(digits[0]) if digits else -1, tag)


@contextlib.contextmanager
def ordered_tosa_partitions() -> Iterator[None]:
    """Sorts tags by their number, and components by their first node."""
    kind = partitioner.TOSAPartitioner
    stock_partition = kind.partition
    stock_components = partitioner._find_connected_components

    def partition(self: Any, exported_program: Any) -> Any:
        result = stock_partition(self, exported_program)
        tags = sorted(result.partition_tags, key=_number)
        ordered = {tag: result.partition_tags[tag] for tag in tags}
        return dataclasses.replace(result, partition_tags=ordered)

    def components(nodes: set[torch.fx.Node]) -> list[set[torch.fx.Node]]:
        return sorted(stock_components(nodes), key=min)

    with (
        replaced(kind, "partition", partition),
        replaced(partitioner, "_find_connected_components", components),
    ):
        yield
