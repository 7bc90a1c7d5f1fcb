"""Lints and formats the checkout: Python, Starlark, layers, prose and workflows.

`check` changes nothing and fails on any finding; `fix` rewrites the files.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

_STARLARK = ("*.bzl", "*.bazel", "*/BUILD", "BUILD")

# Who may load a file is said in the file, by `visibility()`, and Bazel enforces it.
_WARNINGS = "--warnings=-bzl-visibility"


@dataclasses.dataclass(frozen=True)
class Linter:
    """One linter.

    Attributes:
        name: what a person calls it.
        check: the command line that reports and changes nothing.
        fix: the command lines that rewrite files; none where only a person can.
        folder: where below the checkout it runs.
    """

    name: str
    check: Sequence[str]
    fix: Sequence[Sequence[str]] = ()
    folder: str = "."


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


def script(name: str) -> str:
    """Path of a program that a package of groups/dev.in installed beside the interpreter."""
    return str(Path(sysconfig.get_path("scripts"), name))


def layers(root: Path) -> Linter:
    """import-linter on the packages below `root`, with the contracts of its `.importlinter`."""
    run = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    config = str(root / ".importlinter")
    return Linter(
        "import-linter",
        [sys.executable, "-c", run, "--config", config, "--no-cache", "--no-logo"],
        folder="python",
    )


def linters(root: Path, buildifier: str) -> list[Linter]:
    """Everything that has an opinion.

    Args:
        root: the checkout.
        buildifier: path of the buildifier binary.
    """
    ruff = [sys.executable, "-m", "ruff"]
    starlark = tracked(root, *_STARLARK)
    return [
        Linter(
            "ruff check",
            [*ruff, "check", "--no-cache", "."],
            [[*ruff, "check", "--no-cache", "--fix", "."]],
        ),
        Linter(
            "ruff format",
            [*ruff, "format", "--no-cache", "--check", "."],
            [[*ruff, "format", "--no-cache", "."]],
        ),
        Linter(
            "buildifier",
            [buildifier, "--mode=check", "--lint=warn", _WARNINGS, *starlark],
            [[buildifier, "--mode=fix", "--lint=fix", _WARNINGS, *starlark]],
        ),
        layers(root),
    ]


def run(root: Path, linter: Linter, fix: bool) -> bool:
    """Runs one linter in `root`.

    Returns:
        Whether it had nothing to say; where a linter cannot mend, that includes `fix`.
    """
    commands = linter.fix if fix and linter.fix else [linter.check]
    folder = root / linter.folder
    return all(subprocess.run(command, cwd=folder).returncode == 0 for command in commands)


def main(argv: list[str]) -> int:
    """Runs every linter, also after one has failed, and returns 1 if any did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=["check", "fix"])
    parser.add_argument("--buildifier", required=True, type=Path)
    args = parser.parse_args(argv)
    root = checkout()
    failed = [
        linter.name
        for linter in linters(root, str(args.buildifier.absolute()))
        if not run(root, linter, args.mode == "fix")
    ]
    if failed:
        print(
            f"lint: {', '.join(failed)} found something. "
            "`./bazelw run //tools/lint:fix` mends what can be mended by a machine.",
            file=sys.stderr,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
