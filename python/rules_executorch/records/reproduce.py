"""Builds a target twice in different conditions, and says what differs.

The two builds have output bases of their own, so that nothing of one is used by the other, and
differ in HOME, time zone, locale, file mode mask, hash seed, number of jobs, and in whether a
persistent worker or a process of its own runs each action. Caches of outputs are off; the cache of
downloads and the installed toolchain are shared, since those are checked by digest.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rules_executorch.common.errors import UserError
from rules_executorch.program.compare.files import compare_files, sha256

GROUPS = ("manifest", "report", "provenance", "sbom")
"""Output groups that are built beside a target's own outputs."""

_DROPPED = ("BAZEL_", "BUILD_", "PYTHON", "RUNFILES", "TEST_", "XML_", "JAVA_RUNFILES")
_NOTES = (".runfiles_manifest", ".repo_mapping", ".timings.json")
_ORDER = (".pt2", ".json", ".pte", ".ptd")


@dataclasses.dataclass(frozen=True)
class Condition:
    """What one of the two builds is like.

    Attributes:
        name: of its output base.
        variables: of the environment.
        flags: of `bazel build`.
        umask: mask of file modes.
    """

    name: str
    variables: Mapping[str, str]
    flags: Sequence[str]
    umask: int


CONDITIONS = (
    Condition(
        "first",
        {"LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0", "TZ": "UTC"},
        [],
        0o022,
    ),
    Condition(
        "second-in-a-folder-of-another-length",
        {"LC_ALL": "C", "PYTHONHASHSEED": "7", "TZ": "Asia/Kathmandu"},
        ["--jobs=1", "--spawn_strategy=sandboxed,local"],
        0o077,
    ),
)


def find_bazel(workspace: Path, environ: Mapping[str, str]) -> str:
    """The Bazel that builds in a workspace.

    BAZELW_BAZEL, else the workspace's own `bazelw` or `tools/bazel`, else the `bazelw` that started
    this (BAZELW), else what PATH has.

    Raises:
        UserError: there is none.
    """
    configured = environ.get("BAZELW_BAZEL")
    if configured and configured != "prefix":
        return configured
    for name in ("bazelw", "tools/bazel"):
        if os.access(workspace / name, os.X_OK):
            return str(workspace / name)
    if environ.get("BAZELW"):
        return environ["BAZELW"]
    for name in ("bazelisk", "bazel"):
        found = shutil.which(name, path=environ.get("PATH"))
        if found:
            return found
    raise UserError(
        "There is no Bazel: no bazelw in the workspace, and none on PATH.",
        instead="Set BAZELW_BAZEL to the path of one.",
    )


def toolchain_cache(environ: Mapping[str, str]) -> str:
    """Where the toolchain is installed, which both builds share; see bazelw."""
    if environ.get("RULES_EXECUTORCH_CACHE"):
        return environ["RULES_EXECUTORCH_CACHE"]
    base = environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "rules_executorch")


class Builds:
    """The two builds of one run."""

    def __init__(self, workspace: Path, scratch: Path, environ: Mapping[str, str]) -> None:
        """Asks Bazel where its shared folders are.

        Args:
            workspace: where the targets are.
            scratch: an empty folder for the output bases.
            environ: of the person's shell.
        """
        self.workspace = workspace
        self.scratch = scratch
        self.environ = {k: v for k, v in environ.items() if not k.startswith(_DROPPED)}
        self.bazel = find_bazel(workspace, environ)
        # An output base of its own: another build may be running in the workspace's, and this one
        # would wait for it to end.
        start = [self.bazel, f"--output_base={scratch / 'asked'}", "--max_idle_secs=15"]
        asked = self._run([*start, "info", "install_base", "repository_cache"], self.environ, 0o022)
        subprocess.run([*start, "shutdown"], cwd=workspace, env=self.environ, capture_output=True)
        self.shared = dict(line.split(": ", 1) for line in asked.splitlines() if ": " in line)

    def build(self, condition: Condition, targets: Sequence[str], flags: Sequence[str]) -> Path:
        """Builds targets; returns the output base."""
        output_base = self.scratch / condition.name
        home = self.scratch / f"home-of-{condition.name}"
        home.mkdir()
        variables = self.environ | dict(condition.variables)
        variables |= {"HOME": str(home), "RULES_EXECUTORCH_CACHE": toolchain_cache(self.environ)}
        for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            variables.pop(name, None)
        common = [
            f"--repository_cache={self.shared['repository_cache']}",
            "--color=no",
            "--curses=no",
            "--disk_cache=",
            "--remote_cache=",
            "--remote_executor=",
            "--symlink_prefix=/",
        ]
        groups = f"--output_groups={','.join('+' + group for group in GROUPS)}"
        start = self._start(output_base)
        command = [*start, "build", *common, groups, *flags, *condition.flags, "--", *targets]
        try:
            self._run(command, variables, condition.umask)
        finally:
            subprocess.run(
                [*start, "shutdown"], cwd=self.workspace, env=variables, capture_output=True
            )
        return output_base

    def _start(self, output_base: Path) -> list[str]:
        options = [f"--output_base={output_base}", f"--install_base={self.shared['install_base']}"]
        # With another HOME, Bazel would not find the person's own settings.
        settings = os.path.join(os.path.expanduser("~"), ".bazelrc")
        if os.path.isfile(settings):
            options.append(f"--bazelrc={settings}")
        return [self.bazel, *options, "--max_idle_secs=15"]

    def _run(self, command: Sequence[str], variables: Mapping[str, str], umask: int) -> str:
        done = subprocess.run(
            command,
            cwd=self.workspace,
            env=variables,
            umask=umask,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise UserError(
                f"Bazel failed with status {done.returncode}:\n{done.stderr[-4000:].strip()}\n",
                instead="Mend that first; the target has to build.",
            )
        return done.stdout


def outputs(output_base: Path) -> dict[str, Path]:
    """Everything that was built, by its path below `bazel-out`; a link to what is there is not."""
    found = {}
    for root in output_base.glob("execroot/*/bazel-out/*/bin"):
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if not name.endswith(".runfiles")]
            for name in names:
                path = Path(folder, name)
                # Those name the folders of this machine, for this machine; and timings, of which
                # nothing is made, are others every time.
                note = name == "MANIFEST" or name.endswith(_NOTES)
                link = path.is_symlink() and path.resolve().is_relative_to(
                    root.parents[1].resolve()
                )
                if not note and not link and path.is_file():
                    found[str(path.relative_to(root.parents[1]))] = path
    return found


def _rank(path: str) -> tuple[int, str]:
    """Causes before what follows from them: an export comes before its program."""
    suffix = os.path.splitext(path)[1]
    return (_ORDER.index(suffix) if suffix in _ORDER else len(_ORDER), path)


def differences(first: Path, second: Path) -> Iterator[tuple[str, list[str]]]:
    """Compares two output bases.

    Yields:
        The path of a file that is not the same in both, and clauses that say where it differs.
    """
    one, other = outputs(first), outputs(second)
    for path in sorted(one.keys() | other.keys(), key=_rank):
        if path not in one or path not in other:
            yield path, [f"in the {'first' if path in one else 'second'} build only"]
            continue
        found = compare_files(str(one[path]), str(other[path]))
        if found:
            yield path, found


def programs(output_base: Path) -> Iterator[tuple[str, str]]:
    """Paths and digests of what a person asks about: programs, exports and releases."""
    for path, file in sorted(outputs(output_base).items()):
        if path.endswith((".pt2", ".pte", ".ptd", ".tar")):
            yield path, sha256(str(file))
