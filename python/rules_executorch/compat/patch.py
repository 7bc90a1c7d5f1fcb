"""What a patch is, and when it may be applied.

A patch replaces functions of torch or executorch while a context lasts. It rests on what those
functions do inside, so it names the versions it was checked against and is left out for others.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_MISSING = object()

CHECKED: Mapping[str, frozenset[str]] = {
    "torch": frozenset({"2.13.0"}),
    "executorch": frozenset({"1.5.1"}),
}
"""Versions whose sources the patches of this package were read and tested against."""


@dataclasses.dataclass(frozen=True)
class Patch:
    """One named change to torch or executorch.

    Attributes:
        name: the name reports and manifests use.
        reason: what is slow or large without it, in one sentence.
        apply: makes the context manager that is the patch. Raises AttributeError or ImportError
            on entry where the functions it replaces do not exist.
        versions: distribution name to the public versions it is valid for.
    """

    name: str
    reason: str
    apply: Callable[[], contextlib.AbstractContextManager[None]]
    versions: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=lambda: CHECKED)


def installed_version(distribution: str) -> str | None:
    """The public version of an installed distribution, without `+cpu` and the like.

    Returns:
        The version, or None if the distribution is not installed.
    """
    try:
        return importlib.metadata.version(distribution).partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return None


def unsuitable(patch: Patch) -> str | None:
    """Why a patch may not be applied here, or None if it may."""
    for distribution, versions in patch.versions.items():
        version = installed_version(distribution)
        if version is None:
            return f"{distribution} is not installed"
        if version not in versions:
            known = ", ".join(sorted(versions))
            return f"not checked against {distribution} {version} (only {known})"
    return None


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[Any]:
    """Set an attribute of a module or class and put the old one back at the end.

    An attribute that `owner` only inherits is removed again, not copied down.

    Yields:
        The attribute as it was.

    Raises:
        AttributeError: `owner` has no such attribute, so the patch does not fit.
    """
    before = getattr(owner, name)
    own = vars(owner).get(name, _MISSING)
    setattr(owner, name, value)
    try:
        yield before
    finally:
        if own is _MISSING:
            delattr(owner, name)
        else:
            setattr(owner, name, own)
