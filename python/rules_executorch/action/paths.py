"""Paths that a person gives to what `bazel run` starts, which runs in another folder."""

from __future__ import annotations

import os
from pathlib import Path

from rules_executorch.common.errors import UserError

_LINK = "bazel-bin"
_OUTPUTS = "bazel-out"


def given_file(text: str) -> str:
    """The file that a path names where `bazel run` was called.

    Args:
        text: relative to the folder in which a person called Bazel, or absolute.

    Returns:
        A path that holds in this process.

    Raises:
        UserError: there is no such file. If it is below `bazel-bin`, which Bazel turns to the
            outputs of its latest command, the error names those of other commands.
    """
    path = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."), text)
    if path.is_file():
        return str(path)
    elsewhere = _of_other_commands(path)
    if not elsewhere:
        raise UserError(f"There is no file {text}.", instead="Give the path of one.")
    raise UserError(
        f"There is no file {text}: Bazel turns {_LINK} to the outputs of its latest command, and "
        "this one had other flags than the build.",
        instead="Give `bazel run` the flags of the build, before its target, or write "
        f"{elsewhere[0]}.",
    )


def _of_other_commands(path: Path) -> list[Path]:
    """Files that `path` would name if bazel-bin were that of another build, the latest first."""
    for link in path.parents:
        if link.name == _LINK:
            below = path.relative_to(link)
            folders = (link.parent / _OUTPUTS).glob("*/bin")
            found = [folder / below for folder in folders if (folder / below).is_file()]
            return sorted(found, key=lambda file: -file.lstat().st_mtime)
    return []
