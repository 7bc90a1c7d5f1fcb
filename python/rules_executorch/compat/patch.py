"""What a patch is, and when it may be applied.

A patch replaces functions of torch or executorch while a context lasts, and rests on what they and
others do inside. So `patches.json`, beside the code of the patches of a package, names each of
these sources with its digest, and a patch is in force wherever they are unchanged, whatever the
version is. `bazel run //tools/compat:check` compares the digests with an installed version.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

from rules_executorch.compat import sources

_MISSING = object()

SPEED = "speed"
"""Kind of a patch that changes nothing of the program: it saves time, memory or noise."""
CANONICAL = "canonical"
"""Kind of a patch that the bytes of the program depend on."""


@dataclasses.dataclass(frozen=True)
class Patch:
    """One named change to torch or executorch.

    Attributes:
        name: the name reports and manifests use, and of the context manager that is the patch.
        module: the Python module that has it; imported when the patch is applied.
        kind: SPEED or CANONICAL.
        reason: what is slow, large or left to chance without it, in one sentence.
        upstream: the issue or pull request that would make it needless; None if none is known.
        replaces: each function or class whose place it takes, `MODULE:NAME`, with the digest of
            its source.
        rests_on: the same of what it copies or counts on.
        files: modules of all these, with the digest of the whole file: one that is the same need
            not be looked into.
    """

    name: str
    module: str
    kind: str
    reason: str
    upstream: str | None = None
    replaces: Mapping[str, str] = dataclasses.field(default_factory=dict)
    rests_on: Mapping[str, str] = dataclasses.field(default_factory=dict)
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def apply(self) -> contextlib.AbstractContextManager[None]:
        """The context in which the patch is in force.

        Raises:
            ImportError, AttributeError: what it replaces is not there. Some raise it on entry.
        """
        return getattr(importlib.import_module(self.module), self.name)()

    def sources(self) -> Mapping[str, str]:
        """The digests of all that it replaces and rests on."""
        return {**self.replaces, **self.rests_on}

    def unsuitable(self, folders: Sequence[str] | None = None) -> str | None:
        """Why the patch may not be applied, or None if it may.

        Args:
            folders: where packages are; `sys.path` by default.
        """
        searched = tuple(sys.path if folders is None else folders)
        for target, expected in self.sources().items():
            module = target.partition(":")[0]
            try:
                if _file_digest(module, searched) == self.files[module]:
                    continue
                found = _digest(target, searched)
            except sources.NoSource as error:
                return str(error)
            if found != expected:
                return f"the source of {target} differs: {found} instead of {expected}"
        return None


# Packages do not change while a process lives, and a worker lowers many programs.
_digest = functools.cache(sources.digest)
_file_digest = functools.cache(sources.file_digest)


def read_patches(package: str) -> dict[str, Patch]:
    """The patches of a package by name, in the order they are applied.

    Args:
        package: name of the Python package, which has `patches.json` and the modules that it names.
    """
    table = json.loads(resources.files(package).joinpath("patches.json").read_text("utf-8"))
    return {
        name: Patch(name, f"{package}.{entry.pop('module')}", files=table["files"], **entry)
        for name, entry in table["patches"].items()
    }


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
