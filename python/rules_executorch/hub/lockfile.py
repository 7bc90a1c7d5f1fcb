"""The lock file of models: path, size and sha256 of every file.

The module extension `huggingface` reads it.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
from typing import Annotated, Any, Literal

from pydantic import Field

from rules_executorch.common import files, schema
from rules_executorch.common.errors import UserError
from rules_executorch.common.schema import Artifact, Count, Sha256

SCHEMA_VERSION: Literal[1] = 1
_INSTEAD = "Restore it, or delete the file and lock its models again."

# Names that a file of a Bazel repository may have. executorch/private/huggingface/lock.bzl checks
# the same, since a lock file can be written by hand.
_PATH = re.compile(r"[A-Za-z0-9 !%\-@^_#$&'()*+,;=?\[\]{}~/.]+")
_BOUNDARIES = {
    "BUILD", "BUILD.bazel", "MODULE.bazel", "REPO.bazel", "WORKSPACE", "WORKSPACE.bazel",
}  # fmt: skip


Patterns = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...], Field(json_schema_extra={"uniqueItems": True})
]


@dataclasses.dataclass(frozen=True)
class LockedFile(Artifact):
    """One file of a model."""

    size: Count
    """Bytes."""
    sha256: Sha256
    lfs: bool
    """Whether the hub keeps it in large-file storage."""


@dataclasses.dataclass(frozen=True)
class LockedModel(Artifact):
    """One model at one revision."""

    repo: Annotated[str, Field(pattern="^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$")]
    revision: Annotated[str, Field(pattern="^[0-9a-f]{40}$")]
    include: Patterns
    exclude: Patterns
    files: Annotated[dict[str, LockedFile], Field(min_length=1)]
    """By path in the repository. Without include and exclude, every file of the revision."""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files.values())


@dataclasses.dataclass(frozen=True)
class Lock(Artifact):
    """Lock file of models."""

    schema_version: Literal[1]
    models: dict[str, LockedModel]
    """By the name of huggingface.model."""


def check_path(path: str) -> None:
    """Refuses a path of the hub that cannot be a file of a Bazel repository.

    Raises:
        UserError: it is not a plain relative path, has characters that a label cannot have, or
            would be a package boundary.
    """
    segments = path.split("/")
    if {"", ".", ".."} & set(segments):
        why = "it is not a plain relative path"
    elif not _PATH.fullmatch(path):
        why = "it has characters that a Bazel label cannot have"
    elif _BOUNDARIES & set(segments):
        why = "it would be a package boundary to Bazel"
    else:
        return
    raise UserError(
        f"The file {path!r} cannot be in a Bazel repository: {why}.",
        instead=f"Leave it out with --exclude={shlex.quote(path)}.",
    )


def _parse(value: Any, path: str) -> Lock:
    if isinstance(value, dict) and value.get("schema_version", SCHEMA_VERSION) != SCHEMA_VERSION:
        raise UserError(
            f"{path} has schema_version {value['schema_version']!r}, and this ruleset writes"
            f" {SCHEMA_VERSION}.",
            instead="Use the ruleset that wrote it, or delete the file and lock its models again.",
        )
    return schema.parse(
        Lock,
        value,
        f"The lock file of models {path}",
        instead=_INSTEAD,
    )


def read(path: str) -> Lock:
    """Reads a lock file; a missing one is empty.

    Raises:
        UserError: it is not JSON, or does not match the schema.
    """
    if not os.path.exists(path):
        return Lock(SCHEMA_VERSION, {})
    return _parse(files.read_json(path, "The lock file of models", instead=_INSTEAD), path)


def update(path: str, name: str, model: LockedModel) -> bool:
    """Writes a model's entry, and leaves the other entries as they are.

    Args:
        path: the lock file; made if it does not exist.
        name: name of the model in MODULE.bazel.
        model: what is locked.

    Returns:
        Whether the file changed.
    """
    before = read(path)
    locked = Lock(SCHEMA_VERSION, before.models | {name: model})
    _parse(schema.to_json(locked), path)
    if locked == before:
        return False
    schema.write(path, locked)
    return True
