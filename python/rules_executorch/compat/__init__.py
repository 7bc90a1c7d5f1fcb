"""Patches to torch and exir: lowering in less time and memory, with the same result.

with fast_lowering() as report:
    to_edge_transform_and_lower(...).to_executorch().save(...)
report.active, report.skipped
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import logging
from collections.abc import Iterator, Mapping, Sequence

from rules_executorch.compat.patch import CHECKED, Patch, installed_version, unsuitable

__all__ = [
    "CHECKED",
    "PATCHES",
    "Patch",
    "Report",
    "fast_lowering",
    "installed_version",
    "lazy_patch",
]

_LOG = logging.getLogger(__name__)


def _lazily(module: str, function: str) -> contextlib.AbstractContextManager[None]:
    """Import a patch only when it is applied: its imports may not exist in other versions."""
    return getattr(importlib.import_module(module), function)()


def lazy_patch(
    module: str, name: str, reason: str, versions: Mapping[str, frozenset[str]] = CHECKED
) -> Patch:
    """Describes the patch that is the function `name` of a module.

    A module without a dot in its name is one of this package.
    """
    full = module if "." in module else f"{__name__}.{module}"
    return Patch(name, reason, lambda: _lazily(full, name), versions)


PATCHES: tuple[Patch, ...] = (
    lazy_patch(
        "garbage_collection",
        "calm_collector",
        "the garbage collector walks all objects of torch and of the graphs again and again",
    ),
    lazy_patch(
        "recompile",
        "deferred_recompile",
        "every edit of a graph module writes and compiles Python code that hardly ever runs",
    ),
    lazy_patch(
        "partitions",
        "linear_partitions",
        "the whole graph is copied once for each partition",
    ),
    lazy_patch(
        "partitions",
        "unprinted_partitions",
        "the whole module is printed for a debug message once for each partition",
    ),
    lazy_patch(
        "decompositions",
        "needed_decompositions",
        "the whole graph is traced again for decompositions that change nothing",
    ),
    lazy_patch(
        "decompositions",
        "single_registration",
        "each table of decompositions looks up every operator of C++ once for every namespace",
    ),
    lazy_patch(
        "tree_mapping",
        "direct_trees",
        "the structure of every node's arguments is described to map a function over them",
    ),
    lazy_patch(
        "tree_mapping",
        "direct_metadata",
        "tensors are looked for inside every value that is a tensor",
    ),
    lazy_patch(
        "merging",
        "bitset_partitions",
        "the sets of dependent nodes grow with the square of the graph and are walked per merge",
    ),
    lazy_patch(
        "node_sources",
        "shared_node_sources",
        "every pass copies the history of every node",
    ),
    lazy_patch(
        "verification",
        "recorded_values",
        "every check of an edge program runs it on fake tensors",
    ),
    lazy_patch(
        "symbols",
        "remembered_sizes",
        "sympy computes the same products and comparisons of sizes for every tensor",
    ),
    lazy_patch(
        "fake_results",
        "remembered_results",
        "every pass computes the same fake tensors as the pass before it",
    ),
    lazy_patch(
        "composites",
        "remembered_composites",
        "each call of an operator kept whole runs its parts on fake tensors",
    ),
    lazy_patch(
        "delegates",
        "interpreted_delegates",
        "passes rebuild the module of every delegate to learn the shapes of its outputs",
    ),
    lazy_patch(
        "weights",
        "borrowed_constants",
        "the constants of portable kernels are copied into the program",
    ),
    lazy_patch(
        "serialization",
        "remembered_hints",
        "the annotations of a class are evaluated for each field of each value written",
    ),
)
"""All patches, in the order they are applied."""


@dataclasses.dataclass
class Report:
    """Which patches are in force.

    Attributes:
        active: names of the patches applied.
        skipped: name of each patch left out, and why; lowering takes the stock path there.
    """

    active: list[str] = dataclasses.field(default_factory=list)
    skipped: dict[str, str] = dataclasses.field(default_factory=dict)


@contextlib.contextmanager
def fast_lowering(extra: Sequence[Patch] = ()) -> Iterator[Report]:
    """Apply every patch that was checked against the installed torch and executorch.

    The program written is byte for byte what the stock pipeline writes. A patch that does not
    fit is left out, logged as a warning and reported; nothing is raised for it. The weights
    lowered must stay unchanged until the program is written.

    Args:
        extra: patches of the backend, applied after those for all.

    Yields:
        The report, complete before the body runs.
    """
    report = Report()
    with contextlib.ExitStack() as stack:
        for patch in (*PATCHES, *extra):
            why = unsuitable(patch)
            if why is None:
                try:
                    stack.enter_context(patch.apply())
                except (ImportError, AttributeError) as error:
                    why = f"does not fit: {error}"
            if why is None:
                report.active.append(patch.name)
            else:
                report.skipped[patch.name] = why
                _LOG.warning("lowering without patch %s: %s", patch.name, why)
        yield report
