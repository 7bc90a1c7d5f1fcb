"""Python's collector of reference cycles, told to look less often.

Lowering makes millions of small objects that stay. With the stock settings the collector walks
all of them, and everything imported before, again and again.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

# New objects before the youngest are looked at, and how many such looks make one at older ones.
_THRESHOLDS = (50_000, 20, 100)


@contextlib.contextmanager
def calm_collector() -> Iterator[None]:
    """Leave what exists alone, and look at new objects less often."""
    before = gc.get_threshold()
    # Objects that somebody else froze would be thawed with ours.
    freeze = gc.get_freeze_count() == 0
    if freeze:
        gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        if freeze:
            gc.unfreeze()
