"""Where nodes came from, recorded without copying the record each time.

Rests on `torch/fx/traceback.py`: `NodeSource` copies the whole history of a node whenever a
pass visits it, and the history grows by one with every pass. Nothing changes a `NodeSource` once
made, so histories can share their tails.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator

from torch.fx import traceback

from rules_executorch.compat.patch import replaced


@contextlib.contextmanager
def shared_node_sources() -> Iterator[None]:
    """Let a new `NodeSource` refer to the older ones instead of copying them."""
    shallow = types.SimpleNamespace(copy=traceback.copy.copy, deepcopy=list)
    with replaced(traceback, "copy", shallow):
        yield
