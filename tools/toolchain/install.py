"""Makes the Python environment of the actions, once per machine, Python and lock.

    python3.11 install.py --lock BASE.lock [--lock OVERLAY.lock ...] --result RESULT.json

Each lock is a layer: a venv of its own on top of the layers before it, so that a change of an
overlay (test tools, a backend's packages) leaves the base as it is. A layer lies in
CACHE/env/KEY, where KEY covers the locks up to it, the Python and this installer; CACHE is
explained by store.cache_root. RESULT.json gets the folder of the top layer and its site-packages
folders. With --tree FOLDER, the whole Python is copied to FOLDER as well, see tree.py. Only the
standard library is used.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lockfile
import marker
import tree
import wheels
from errors import InstallError
from interpreter import (
    PYTHON,
    Interpreter,
    clean_environment,
    create_venv,
    pip_command,
    running,
)
from store import cache_root, made_once, say

INSTALLER_VERSION = 1
"""Changed whenever an environment made by this code differs from one made before."""

MARKER = "marker.json"
_BYTECODE = Path(__file__).with_name("bytecode.py")
_SITE_PACKAGES = Path("lib", "python{}.{}".format(*PYTHON), "site-packages")


def environment_key(interpreter: Interpreter, locks: Sequence[str]) -> str:
    """The name of an environment's folder: 20 hexadecimal digits."""
    parts = [
        str(INSTALLER_VERSION),
        interpreter.executable,
        interpreter.version,
        interpreter.os,
        interpreter.arch,
        *locks,
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def usable(environment: Path) -> bool:
    """Whether the environment is there and its Python still runs.

    The Python is a link: it dangles after the machine's Python was removed.
    """
    python = environment / "bin" / "python{}.{}".format(*PYTHON)
    return (environment / MARKER).is_file() and os.access(python, os.X_OK)


def layer(
    part: Path,
    final: Path,
    interpreter: Interpreter,
    locks: Sequence[tuple[str, str]],
    below: Sequence[Path],
    lock_descriptor: int,
    pip_for: wheels.PipFor = pip_command,
) -> None:
    """Fills `part` with one layer.

    Args:
        part: the folder to make.
        final: the folder that it will be renamed to.
        interpreter: the Python to use.
        locks: (name, text) of the locks from the base to this layer.
        below: the site-packages folders of the layers under it.
        lock_descriptor: inherited by children, see store.made_once.
        pip_for: finds the command that runs pip, by default the machine's.
    """
    started = time.monotonic()
    name, text = locks[-1]
    requirements = lockfile.parse(text, name)
    say(f"making the environment of {name} ({len(requirements)} packages) in {final}")
    python = create_venv(part)
    wheels.install(interpreter, python, requirements, lock_descriptor, pip_for)
    site_packages = part / _SITE_PACKAGES
    _forget_scripts(part)
    if below:
        paths = "".join(f"import site; site.addsitedir({str(path)!r})\n" for path in below)
        (site_packages / "rules_executorch_layers.pth").write_text(paths, encoding="utf-8")
    say("compiling byte code")
    subprocess.run(
        [python, "-s", "-P", _BYTECODE, site_packages],
        env=clean_environment() | {"PYTHONHASHSEED": "0"},
        check=True,
        pass_fds=[lock_descriptor],
    )
    contents = marker.create(interpreter, [text for _, text in locks], [*below, site_packages])
    _check_complete(contents, requirements, name)
    (part / MARKER).write_text(marker.render(contents), encoding="ascii")
    say(f"environment of {name} ready after {time.monotonic() - started:.0f} s")


def _forget_scripts(environment: Path) -> None:
    """Removes scripts that name the temporary folder; programs such as ruff stay."""
    for path in (environment / "bin").iterdir():
        if path.is_symlink():
            continue
        with open(path, "rb") as file:
            head = file.read(4096)
        if head.startswith(b"#!") or os.fsencode(environment) in head:
            path.unlink()


def _check_complete(
    contents: dict[str, Any], requirements: Sequence[lockfile.Requirement], name: str
) -> None:
    installed = {(wheel["name"], wheel["version"]) for wheel in contents["wheels"]}
    missing = [r for r in requirements if (r.name, r.version) not in installed]
    if missing:
        raise InstallError(
            f"After the installation of {name}, {missing[0].name} {missing[0].version} is not "
            "there. A constraint or configuration of pip on this machine changed the version: "
            "see `pip config list`."
        )


def environment(
    interpreter: Interpreter,
    root: Path,
    locks: Sequence[tuple[str, str]],
    pip_for: wheels.PipFor = pip_command,
) -> tuple[Path, list[Path]]:
    """Makes all layers and returns the folder of the top one and every site-packages folder."""
    below: list[Path] = []
    top = root
    for count in range(1, len(locks) + 1):
        upto = locks[:count]
        top = root / "env" / environment_key(interpreter, [text for _, text in upto])

        def build(
            part: Path,
            descriptor: int,
            upto: Sequence[tuple[str, str]] = upto,
            final: Path = top,
        ) -> None:
            layer(part, final, interpreter, upto, below, descriptor, pip_for)

        made_once(top, build, usable)
        below.append(top / _SITE_PACKAGES)
    return top, below


def main(argv: Sequence[str]) -> int:
    """Installs, writes the result and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lock", action="append", required=True, type=Path)
    parser.add_argument("--result", required=True, type=Path)
    parser.add_argument("--tree", type=Path)
    args = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        locks = [(path.name, path.read_text(encoding="utf-8")) for path in args.lock]
        interpreter = running()
        top, site_packages = environment(interpreter, cache_root(os.environ), locks)
        if args.tree:
            tree.create(args.tree, interpreter, site_packages, _BYTECODE)
        result = {"environment": str(top), "site_packages": [str(p) for p in site_packages]}
        args.result.write_text(json.dumps(result), encoding="utf-8")
    except InstallError as error:
        say(f"ERROR: {error}")
        return 1
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
            raise
        say(
            f"ERROR: {error}. The environment needs a writable folder with about 3 GB: free some "
            "space, or set RULES_EXECUTORCH_CACHE to another folder."
        )
        return 1
    except KeyboardInterrupt:
        say("interrupted; nothing half-made was left.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
