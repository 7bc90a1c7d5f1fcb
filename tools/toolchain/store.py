"""The folder of environments: each made once per machine, whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

Build = Callable[[Path, int], None]
"""Fills a folder; the number is the lock's descriptor, for children to inherit."""


def say(text: str) -> None:
    """Prints a line of progress."""
    print(f"rules_executorch: {text}", file=sys.stderr, flush=True)


def cache_root(env: Mapping[str, str]) -> Path:
    """Where this machine keeps environments: the first of RULES_EXECUTORCH_CACHE,
    XDG_CACHE_HOME/rules_executorch and HOME/.cache/rules_executorch that is set, else a folder of
    this user in /var/tmp."""
    if env.get("RULES_EXECUTORCH_CACHE"):
        return Path(env["RULES_EXECUTORCH_CACHE"]).absolute()
    if env.get("XDG_CACHE_HOME"):
        return Path(env["XDG_CACHE_HOME"]).absolute() / "rules_executorch"
    if env.get("HOME"):
        return Path(env["HOME"]).absolute() / ".cache" / "rules_executorch"
    root = Path(f"/var/tmp/rules_executorch-{os.getuid()}")
    say(f"HOME is not set; environments are kept in {root}.")
    return root


def made_once(folder: Path, build: Build, usable: Callable[[Path], bool]) -> Path:
    """Returns `folder`, made by `build` if it is not there or not `usable`.

    `build` fills a temporary folder beside it, which is renamed at the end, so that an
    interrupted build leaves nothing that looks finished. Builds of the same folder wait for each
    other; a build that was killed is started again from nothing.
    """
    if usable(folder):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    with _locked(folder.with_name(folder.name + ".lock"), folder) as lock:
        if usable(folder):
            return folder
        part = folder.with_name(folder.name + ".part")
        for stale in (part, folder):
            if stale.exists():
                shutil.rmtree(stale)
        try:
            build(part, lock)
            os.rename(part, folder)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
    return folder


@contextlib.contextmanager
def _locked(path: Path, what: Path) -> Iterator[int]:
    # The file stays: removing it would let two builds hold locks on two files of one name.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process is making {what}; waiting for it.")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)
