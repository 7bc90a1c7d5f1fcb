"""Lints and formats the checkout: Python, Starlark, layers, types, prose and workflows.

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

_SCHEMAS = {
    "github-workflows": ".github/workflows/*",
    "github-issue-forms": ".github/ISSUE_TEMPLATE/*.yaml",
    "github-issue-config": ".github/ISSUE_TEMPLATE/config.yml",
    "dependabot": ".github/dependabot.yaml",
}
"""Schemas that check-jsonschema brings along, and what has to be valid by them."""

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
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
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
        [sys.executable, "-c", run, config, "--no-cache", "--no-logo"],
        folder="python",
    )


def types() -> Linter:
    """mypy on what runs in builds and on the tools, with the settings of `mypy.ini`."""
    check = [sys.executable, "-m", "mypy", "--cache-dir", os.devnull, "--no-error-summary"]
    return Linter("mypy", [*check, "python", "tools"])


def workflows(root: Path) -> list[Linter]:
    """Whether GitHub can read its files below `root`, and what they give away to strangers."""
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema"]
    return [
        *(
            Linter(f"check-jsonschema {name}", [*check, f"vendor.{name}", *tracked(root, pattern)])
            for name, pattern in _SCHEMAS.items()
        ),
        Linter("zizmor", [script("zizmor"), "--offline", "--quiet", "--persona=pedantic", "."]),
    ]


def prose(root: Path) -> list[Linter]:
    """Spelling of all files below `root`, and the form of its Markdown."""
    typos = [script("typos"), "--force-exclude"]
    files = tracked(root)
    pages = [file for file in tracked(root, "*.md") if not file.startswith(".github/")]
    scan = ["--config", ".pymarkdown.yaml", "scan", *pages]
    return [
        Linter("typos", [*typos, *files], [[*typos, "--write-changes", *files]]),
        Linter("pymarkdown", [sys.executable, "-m", "pymarkdown", *scan]),
    ]


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
        types(),
        *prose(root),
        *workflows(root),
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
