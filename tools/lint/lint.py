"""Lints and formats the checkout: ruff for Python, buildifier for Starlark.

`check` changes nothing and fails on any finding; `fix` rewrites the files.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

_STARLARK = ("*.bzl", "*.bazel", "*/BUILD", "BUILD")

# Who may load a file is said in the file, by `visibility()`, and Bazel enforces it.
_WARNINGS = "--warnings=-bzl-visibility"


def checkout() -> Path:
    """Root of the checkout that this file, or the symlink to it in a runfiles tree, belongs to."""
    return Path(os.path.realpath(__file__)).parents[2]


def tracked(root: Path, *patterns: str) -> list[str]:
    """Files of the checkout that git tracks or would track, as paths relative to `root`."""
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        + ["--", *patterns],
        check=True,
        capture_output=True,
    ).stdout.decode()
    return sorted(name for name in listed.split("\0") if name and (root / name).exists())


def commands(fix: bool, buildifier: str, starlark: list[str]) -> list[list[str]]:
    """The command lines of the linters.

    Args:
        fix: rewrite files instead of reporting them.
        buildifier: path of the buildifier binary.
        starlark: files for buildifier.
    """
    ruff = [sys.executable, "-m", "ruff"]
    if fix:
        return [
            [*ruff, "check", "--no-cache", "--fix", "."],
            [*ruff, "format", "--no-cache", "."],
            [buildifier, "--mode=fix", "--lint=fix", _WARNINGS, *starlark],
        ]
    return [
        [*ruff, "check", "--no-cache", "."],
        [*ruff, "format", "--no-cache", "--check", "."],
        [buildifier, "--mode=check", "--lint=warn", _WARNINGS, *starlark],
    ]


def main(argv: list[str]) -> int:
    """Runs every linter, also after one has failed, and returns 1 if any did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=["check", "fix"])
    parser.add_argument("--buildifier", required=True, type=Path)
    args = parser.parse_args(argv)
    root = checkout()
    buildifier = str(args.buildifier.absolute())
    failed = []
    for command in commands(args.mode == "fix", buildifier, tracked(root, *_STARLARK)):
        if subprocess.run(command, cwd=root).returncode:
            failed.append(Path(command[2] if command[0] == sys.executable else command[0]).name)
    if failed:
        print(
            f"lint: {', '.join(sorted(set(failed)))} found something. "
            "`./bazelw run //tools/lint:fix` mends what can be mended by a machine.",
            file=sys.stderr,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
