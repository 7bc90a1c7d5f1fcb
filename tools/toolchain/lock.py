"""Resolves every group of packages for every platform and writes the locks.

    bazel run //tools/toolchain:lock [-- --upgrade] [--platform linux_x86_64]

`requirements.in` is what the actions import. Each `groups/NAME.in` is a layer on top of it:
resolved together with it, and locked without what it already has. uv does the work. It does not
read pip's configuration, so the indexes and folders that pip uses on this machine are handed to
it; none of them gets into a lock.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import lockfile
from errors import InstallError
from interpreter import PYTHON, clean_environment
from wheels import TORCH_CPU_INDEX

_HEADER = "# Written by `bazel run //tools/toolchain:lock` from {source} for {platform}.\n"
_PYTHON = ".".join(map(str, PYTHON))


@dataclasses.dataclass(frozen=True)
class Platform:
    """A platform with a lock.

    Attributes:
        uv: its name for uv.
        torch_local: the local version of its CPU build of torch; None where the plain version is
            that build.
    """

    uv: str
    torch_local: str | None


PLATFORMS = {
    "linux_x86_64": Platform("x86_64-manylinux_2_28", "cpu"),
    "linux_aarch64": Platform("aarch64-manylinux_2_28", "cpu"),
}


COMPILERS = frozenset({"executorch", "torch", "torchao", "transformers"})
"""Packages that no group may have in a version of its own: they decide what programs look like."""


def pip_options(config: str, environ: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Translates pip's configuration for uv.

    Args:
        config: what `pip config list` prints, lines `SECTION.KEY='VALUE'`; it has the
            environment's PIP_* too.
        environ: the environment, for where pip itself is absent.

    Returns:
        Options and environment variables of uv.
    """
    values: dict[str, str] = {}
    ranks = {"global": 0, "install": 1, ":env:": 2}
    seen: dict[str, int] = {}
    for line in config.splitlines():
        key, equals, value = line.partition("=")
        section, _, name = key.rpartition(".")
        rank = ranks.get(section)
        if not equals or rank is None or rank < seen.get(name, -1):
            continue
        values[name], seen[name] = shlex.split(value)[0] if value else "", rank
    for name in ("index-url", "extra-index-url", "find-links", "cert"):
        variable = "PIP_" + name.upper().replace("-", "_")
        if environ.get(variable):
            values[name] = environ[variable]
    options: list[str] = []
    if "index-url" in values:
        options += ["--default-index", values["index-url"]]
    for url in values.get("extra-index-url", "").split():
        # Folders in the form of an index are a cache of the real index; uv cannot read them.
        if not url.startswith("file:"):
            options += ["--index", url]
    for place in values.get("find-links", "").split():
        options += ["--find-links", place]
    variables = {"SSL_CERT_FILE": values["cert"]} if values.get("cert") else {}
    return options, variables


def on_top(
    resolved: Sequence[lockfile.Requirement], below: Sequence[lockfile.Requirement]
) -> list[lockfile.Requirement]:
    """What a layer has to install: everything resolved but what the layers below it have.

    A package in another version than below is installed again and hides the lower one; that of
    COMPILERS never happens, since they are fixed.
    """
    versions = {requirement.name: requirement.version for requirement in below}
    return [r for r in resolved if versions.get(r.name) != r.version]


def without(excludes: str, asked: str) -> str:
    """The excludes that no group asks for itself, such as a test library that its tests use."""
    names = {
        re.split(r"[^A-Za-z0-9._-]", line.strip(), maxsplit=1)[0] for line in asked.splitlines()
    }
    return "".join(f"{line}\n" for line in excludes.splitlines() if line.strip() not in names)


def check_torch(resolved: Sequence[lockfile.Requirement], platform: Platform) -> bool:
    """Whether the resolved torch is the CPU build of the platform."""
    versions = [requirement.version for requirement in resolved if requirement.name == "torch"]
    wanted = platform.torch_local or ""
    return all(version.partition("+")[2] == wanted for version in versions)


def _pip_config() -> str:
    base = getattr(sys, "_base_executable", sys.executable)
    command = [base, "-m", "pip", "config", "list"]
    result = subprocess.run(command, env=clean_environment(), capture_output=True, text=True)
    return result.stdout if result.returncode == 0 else ""


def _resolve(
    sources: Sequence[Path],
    platform: Platform,
    options: Sequence[str],
    variables: dict[str, str],
    preferred: Sequence[lockfile.Requirement],
    fixed: Sequence[lockfile.Requirement],
) -> list[lockfile.Requirement]:
    from uv import find_uv_bin

    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch, "lock")
        # uv keeps the versions that it finds in the output file, where it can.
        output.write_text("".join(r.render() for r in preferred), encoding="ascii")
        excludes = Path(scratch, "excludes")
        asked = "".join(source.read_text(encoding="utf-8") for source in sources)
        excludes.write_text(
            without((sources[0].parent / "excludes.txt").read_text(encoding="utf-8"), asked),
            encoding="utf-8",
        )
        constraints = Path(scratch, "constraints")
        constraints.write_text("".join(f"{r.name}=={r.version}\n" for r in fixed), encoding="ascii")
        command = [
            find_uv_bin(),
            "pip",
            "compile",
            *map(str, sources),
            f"--excludes={excludes}",
            f"--constraints={constraints}",
            f"--output-file={output}",
            "--generate-hashes",
            "--no-header",
            "--no-annotate",
            "--no-config",
            "--only-binary=:all:",
            "--index-strategy=unsafe-best-match",
            f"--python-version={_PYTHON}",
            f"--python-platform={platform.uv}",
            *options,
        ]
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "UV_"))}
        result = subprocess.run(command, env=env | variables, capture_output=True, text=True)
        if result.returncode != 0:
            raise InstallError(f"uv could not resolve {sources[-1].name}:\n{result.stderr.strip()}")
        return lockfile.parse(output.read_text(encoding="ascii"), str(output))


def _existing(path: Path) -> list[lockfile.Requirement]:
    return lockfile.parse(path.read_text(encoding="ascii"), path.name) if path.exists() else []


def _base(
    folder: Path, name: str, options: Sequence[str], variables: dict[str, str], upgrade: bool
) -> list[lockfile.Requirement] | None:
    platform = PLATFORMS[name]
    source = folder / "requirements.in"
    preferred = [] if upgrade else _existing(lock_path(folder, "", name))
    resolved = _resolve([source], platform, options, variables, preferred, [])
    if check_torch(resolved, platform):
        return resolved
    try:
        more = [*options, "--index", TORCH_CPU_INDEX]
        resolved = _resolve([source], platform, more, variables, preferred, [])
    except InstallError:
        return None
    return resolved if check_torch(resolved, platform) else None


def lock_path(folder: Path, group: str, platform: str) -> Path:
    """Where a lock lies; the base group has no name."""
    name = f"{group or 'requirements'}_{platform}_cp{''.join(map(str, PYTHON))}.lock"
    return folder / "groups" / name if group else folder / name


def _write(folder: Path, group: str, platform: str, locked: Sequence[lockfile.Requirement]) -> None:
    path = lock_path(folder, group, platform)
    source = f"groups/{group}.in" if group else "requirements.in"
    text = _HEADER.format(source=source, platform=platform) + "".join(r.render() for r in locked)
    path.write_text(text, encoding="ascii")
    print(f"{path.relative_to(folder)}: {len(locked)} packages")


def main(argv: Sequence[str]) -> int:
    """Writes the locks of all platforms whose CPU build of torch can be had from here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platform", action="append", choices=sorted(PLATFORMS))
    parser.add_argument("--upgrade", action="store_true", help="newest versions that fit the .in")
    args = parser.parse_args(argv)
    workspace = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    folder = Path(workspace, "tools/toolchain") if workspace else Path(__file__).resolve().parent
    groups = sorted(path.stem for path in folder.glob("groups/*.in"))
    options, variables = pip_options(_pip_config(), os.environ)
    written = 0
    try:
        for name in args.platform or PLATFORMS:
            base = _base(folder, name, options, variables, args.upgrade)
            if base is None:
                print(
                    f"{name}: left alone, since its CPU build of torch is neither where pip looks "
                    "on this machine nor on PyTorch's index of CPU builds."
                )
                continue
            _write(folder, "", name, base)
            written += 1
            fixed = [requirement for requirement in base if requirement.name in COMPILERS]
            for group in groups:
                sources = [folder / "requirements.in", folder / "groups" / f"{group}.in"]
                own = [] if args.upgrade else _existing(lock_path(folder, group, name))
                names = {requirement.name for requirement in own}
                preferred = own + [r for r in base if r.name not in names]
                resolved = _resolve(sources, PLATFORMS[name], options, variables, preferred, fixed)
                _write(folder, group, name, on_top(resolved, base))
    except InstallError as error:
        print(f"lock: {error}", file=sys.stderr)
        return 1
    return 0 if written else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
