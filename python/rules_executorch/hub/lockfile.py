"""The lock file of models: path, size and sha256 of every file.

Its schema is schema/huggingface_lock.schema.json; the module extension `huggingface` reads it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import jsonschema

from rules_executorch.common import files
from rules_executorch.common.errors import UserError

SCHEMA_VERSION = 1

# Names that a file of a Bazel repository may have. executorch/private/huggingface/lock.bzl checks
# the same, since a lock file can be written by hand.
_PATH = re.compile(r"[A-Za-z0-9 !%\-@^_#$&'()*+,;=?\[\]{}~/.]+")
_BOUNDARIES = {
    "BUILD", "BUILD.bazel", "MODULE.bazel", "REPO.bazel", "WORKSPACE", "WORKSPACE.bazel",
}  # fmt: skip


@dataclass(frozen=True)
class LockedFile:
    """One file of a model.

    Attributes:
        size: bytes.
        sha256: 64 lower-case hexadecimal digits.
        lfs: whether the hub keeps it in large-file storage.
    """

    size: int
    sha256: str
    lfs: bool


@dataclass(frozen=True)
class LockedModel:
    """One model at one revision; `files` by path in the repository."""

    repo: str
    revision: str
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    files: dict[str, LockedFile] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files.values())

    def to_json(self) -> dict[str, Any]:
        """The entry, with sorted patterns."""
        return {
            "repo": self.repo,
            "revision": self.revision,
            "include": sorted(set(self.include)),
            "exclude": sorted(set(self.exclude)),
            "files": {path: vars(file) for path, file in self.files.items()},
        }


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


def _check(value: Any, path: str) -> None:
    if isinstance(value, dict) and value.get("schema_version", SCHEMA_VERSION) != SCHEMA_VERSION:
        raise UserError(
            f"{path} has schema_version {value['schema_version']!r}, and this ruleset writes"
            f" {SCHEMA_VERSION}.",
            instead="Use the ruleset that wrote it, or delete the file and lock its models again.",
        )
    schema = json.loads(
        resources.files("rules_executorch")
        .joinpath("schema/huggingface_lock.schema.json")
        .read_text(encoding="utf-8")
    )
    error = jsonschema.exceptions.best_match(
        jsonschema.Draft202012Validator(schema).iter_errors(value)
    )
    if error is not None:
        raise UserError(
            f"{path} is not a lock file of models: at {error.json_path}, {error.message}.",
            instead="Restore it, or delete the file and lock its models again.",
        )


def read(path: str) -> dict[str, Any]:
    """Reads a lock file; a missing one is empty.

    Raises:
        UserError: it is not JSON, or does not match the schema.
    """
    if not os.path.exists(path):
        return {"schema_version": SCHEMA_VERSION, "models": {}}
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except ValueError as error:
        raise UserError(
            f"{path} is not readable as JSON: {error}.",
            instead="Restore it, or delete the file and lock its models again.",
        ) from error
    _check(value, path)
    return value


def update(path: str, name: str, model: LockedModel) -> bool:
    """Writes a model's entry, and leaves the other entries as they are.

    Args:
        path: the lock file; made if it does not exist.
        name: name of the model in MODULE.bazel.
        model: what is locked.

    Returns:
        Whether the file changed.
    """
    lock = read(path)
    before = json.dumps(lock, sort_keys=True)
    lock["models"][name] = model.to_json()
    _check(lock, path)
    if json.dumps(lock, sort_keys=True) == before:
        return False
    files.write_json(path, lock)
    return True
