"""How the readers are fuzzed: hypothesis makes inputs, and a bound of memory is watched.

A run in CI is the same every time. To search further, set FUZZ_EXAMPLES to how many inputs each
test tries; they are then random. What such a run finds becomes an explicit case of the reader.
"""

from __future__ import annotations

import contextlib
import os
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from rules_executorch.common.errors import UserError

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "0"))

MEGABYTES = 1 << 20


def bounded(examples: int) -> Callable[[Any], Any]:
    """Settings of a fuzz test with a number of inputs for CI."""
    return settings(
        max_examples=EXAMPLES or examples,
        derandomize=not EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@contextlib.contextmanager
def read_or_refused(megabytes: float = 4) -> Iterator[None]:
    """A reader either reads or refuses in words, and allocates no more than a bound.

    Args:
        megabytes: how much memory Python objects may take meanwhile; the inputs have some
            kilobytes.
    """
    tracemalloc.start()
    try:
        with contextlib.suppress(UserError):
            yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < megabytes * MEGABYTES, f"{peak:,} bytes for a small file"


EDGE_INTEGERS = st.sampled_from(
    [-1, 0, 1, 2, 3, 7, 8, 2**16, 2**31 - 1, 2**31, 2**32, 2**48, 2**53, 2**63 - 1, 2**63, 2**64]
)

NUMBERS = st.one_of(EDGE_INTEGERS, st.integers(-4, 300), st.just(10**400))

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    NUMBERS,
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["", "..", "/etc/passwd", "\ud800", "\0", "a" * 300, "F32", "llama"]),
)

ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=8,
)


@st.composite
def damaged(draw: st.DrawFn, sound: bytes, edits: int = 4) -> bytes:
    """A file with a few bytes changed, cut out, doubled, or put in."""
    data = bytearray(sound)
    for _ in range(draw(st.integers(1, edits))):
        place = draw(st.integers(0, max(len(data) - 1, 0)))
        length = draw(st.integers(1, 16))
        kind = draw(st.sampled_from(["flip", "number", "cut", "double", "put", "truncate"]))
        if kind == "flip" and data:
            data[place] ^= 1 << draw(st.integers(0, 7))
        elif kind == "number":
            number = draw(EDGE_INTEGERS) & (2**64 - 1)
            size = draw(st.sampled_from([1, 2, 4, 8]))
            data[place : place + size] = number.to_bytes(8, "little")[:size]
        elif kind == "cut":
            del data[place : place + length]
        elif kind == "double":
            data[place:place] = data[place : place + length]
        elif kind == "put":
            data[place:place] = draw(st.binary(min_size=1, max_size=16))
        elif kind == "truncate":
            del data[place:]
    return bytes(data)
