"""Differences of bytes, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

FEW = 5
"""How many differences of one kind are listed."""


def changed_bytes(first: bytes, second: bytes, item: int = 1) -> str:
    """How much of some data differs, and where first.

    Args:
        first, second: the data.
        item: bytes of an element, for data that is a tensor.

    Returns:
        For example `1 of 64 elements differs, the first at element 3`.
    """
    if len(first) != len(second):
        return f"{len(first):,} bytes in the first and {len(second):,} in the second"
    differs = numpy.frombuffer(first, numpy.uint8) != numpy.frombuffer(second, numpy.uint8)
    whole = len(differs) - len(differs) % item
    changed = differs[:whole].reshape(-1, item).any(axis=1)
    places = numpy.flatnonzero(changed)
    kind = "byte" if item == 1 else "element"
    if not len(places):
        return f"only the padding after its {len(changed):,} {kind}s"
    verb = "differs" if len(places) == 1 else "differ"
    return f"{len(places):,} of {len(changed):,} {kind}s {verb}, the first at {kind} {places[0]:,}"


def few_lines(lines: Sequence[str], what: str) -> list[str]:
    """The first lines, and how many more there are."""
    shown = list(lines[:FEW])
    if len(lines) > FEW:
        shown.append(f"and {len(lines) - FEW:,} more {what}")
    return shown
