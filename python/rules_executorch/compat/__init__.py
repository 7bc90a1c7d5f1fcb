"""Patches to torch and exir: lowering in less time and memory, with the same result.

with patched_lowering(backend.patches) as report:
    to_edge_transform_and_lower(...).to_executorch().save(...)
report.active, report.skipped
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Iterator, Sequence

from rules_executorch.common.errors import UserError
from rules_executorch.compat.patch import CANONICAL, SPEED, Patch, read_patches

__all__ = [
    "CANONICAL",
    "PATCHES",
    "Patch",
    "Report",
    "SPEED",
    "TRACING",
    "check_canonical",
    "patched_export",
    "patched_lowering",
    "read_patches",
]

_LOG = logging.getLogger(__name__)

_TRACING = "uncopied_parameters"

PATCHES: tuple[Patch, ...] = tuple(
    patch for name, patch in read_patches(__name__).items() if name != _TRACING
)
"""The patches for the lowerings of all backends, in the order they are applied."""

TRACING: Patch = read_patches(__name__)[_TRACING]
"""The patch for exports."""


@dataclasses.dataclass
class Report:
    """Which patches are in force.

    Attributes:
        active: names of the patches applied.
        skipped: name of each patch left out, and why; lowering takes the stock path there.
    """

    active: list[str] = dataclasses.field(default_factory=list)
    skipped: dict[str, str] = dataclasses.field(default_factory=dict)


def check_canonical(patches: Sequence[Patch]) -> None:
    """Refuses to go on without a patch that the bytes of the program depend on.

    Raises:
        UserError: names the patch and the source that differs.
    """
    for patch in patches:
        if patch.kind == CANONICAL:
            why = patch.unsuitable()
            if why is not None:
                raise _not_canonical(patch, why)


def patched_lowering(
    extra: Sequence[Patch] = (), allow_noncanonical: bool = False
) -> contextlib.AbstractContextManager[Report]:
    """Apply every patch for lowering whose sources are those that are installed.

    The program written is byte for byte what the stock pipeline writes, but for what patches of
    the kind CANONICAL make independent of time and chance. A patch that does not fit is left out,
    logged as a warning and reported. The weights lowered must stay unchanged until the program is
    written.

    Args:
        extra: patches of the backend, applied after those for all.
        allow_noncanonical: whether those of the kind CANONICAL may be left out.

    Returns:
        A context that gives the report, complete before the body runs.

    Raises:
        UserError: on entry: a patch of the kind CANONICAL does not fit, and that is not allowed.
    """
    return _applied((*PATCHES, *extra), allow_noncanonical)


def patched_export() -> contextlib.AbstractContextManager[Report]:
    """Apply the patch for exports, likewise; the graph is the same without."""
    return _applied((TRACING,), False)


@contextlib.contextmanager
def _applied(patches: Sequence[Patch], allow_noncanonical: bool) -> Iterator[Report]:
    report = Report()
    with contextlib.ExitStack() as stack:
        for patch in patches:
            why = patch.unsuitable()
            if why is None:
                try:
                    stack.enter_context(patch.apply())
                except (ImportError, AttributeError) as error:
                    why = f"it does not fit: {error}"
            if why is None:
                report.active.append(patch.name)
            elif patch.kind == CANONICAL and not allow_noncanonical:
                raise _not_canonical(patch, why)
            else:
                report.skipped[patch.name] = why
                _LOG.warning("without the patch %s: %s", patch.name, why)
        yield report


def _not_canonical(patch: Patch, why: str) -> UserError:
    return UserError(
        f"The bytes of the program would not be reproducible: {patch.reason}, and the patch "
        f"{patch.name}, which mends that, does not fit what is installed ({why}).",
        instead="Use the versions of rules_executorch's own toolchain, or write "
        "allow_noncanonical = True if the bytes may differ from run to run.",
    )
