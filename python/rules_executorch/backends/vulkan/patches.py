"""The graphs that Vulkan's passes look for, made once.

Rests on `executorch/backends/vulkan/patterns` (`fusable_patterns`). Each entry exports small
models to get its graphs; the functions are cached there, but the registry holds the bare ones, so
every delegate exports them again.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

from executorch.backends.vulkan.patterns import fusable_patterns

from rules_executorch.compat.patch import replaced


@contextlib.contextmanager
def shared_vulkan_patterns() -> Iterator[None]:
    """Keeps the graphs of a pattern for as long as the context lasts; nothing writes to them."""
    with contextlib.ExitStack() as stack:
        for entry in fusable_patterns.values():
            if entry.get_graphs_fn is not None:
                cached = functools.cache(entry.get_graphs_fn)
                stack.enter_context(replaced(entry, "get_graphs_fn", cached))
        yield
