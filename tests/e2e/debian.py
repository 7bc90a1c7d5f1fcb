"""Programs from Debian's packages, unpacked into the cache and not installed."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from nested import cache


class Programs:
    """Programs of an unpacked set of packages.

    Attributes:
        root: where the packages are unpacked.
        env: variables with which the programs find their libraries.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        folders = {str(path.parent) for path in root.rglob("*.so*")}
        self.env = os.environ | {"LD_LIBRARY_PATH": ":".join(sorted(folders))}

    def run(self, program: str, *arguments: str | Path) -> str:
        """Runs a program of the packages and returns what it prints; fails if it does."""
        return output([str(self.root / "usr" / "bin" / program), *map(str, arguments)], self.env)

    def run_jar(self, name: str, *arguments: str | Path) -> str:
        """The same for a program in Java, by the first jar whose name matches a glob."""
        jars = sorted(
            path for path in (self.root / "usr/share/java").glob(name) if not path.is_symlink()
        )
        assert jars, f"The packages have no {name} in usr/share/java."
        return output([java("java"), "-jar", str(jars[0]), *map(str, arguments)], None)


@functools.cache
def programs(*packages: str) -> Programs:
    """Fetches Debian packages and what they need that this machine lacks, and unpacks them.

    Fails with a sentence where that is not possible.
    """
    for tool in ("apt-get", "dpkg-deb"):
        assert shutil.which(tool), (
            f"{', '.join(packages)} come from Debian's packages, and this machine has no {tool}: "
            "run the test on Debian or a system made from it."
        )
    key = hashlib.sha256(" ".join(packages).encode()).hexdigest()[:16]
    root = cache() / "debian" / key
    if not root.exists():
        work = root.with_name(f"{key}.{os.getpid()}")
        try:
            _unpack(packages, work)
            try:
                (work / "root").rename(root)
            except OSError:
                # Another test may have been faster.
                if not root.exists():
                    raise
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return Programs(root)


def _unpack(packages: Sequence[str], work: Path) -> None:
    # The lists that the machine has, or else fresh ones of this test's own.
    failure = _download(packages, work, "/var/lib/apt/lists")
    if failure is not None:
        lists = work / "lists"
        failure = _apt(work, str(lists), "update") or _download(packages, work, str(lists))
    assert failure is None, (
        f"The Debian packages {', '.join(packages)} could not be fetched, and the test needs "
        f"them. apt says: {failure} Check the network and apt's sources."
    )
    (work / "root").mkdir()
    for package in (work / "cache" / "archives").glob("*.deb"):
        output(["dpkg-deb", "-x", str(package), str(work / "root")], None)


def _download(packages: Sequence[str], work: Path, lists: str) -> str | None:
    return _apt(
        work, lists, "install", "-y", "--no-install-recommends", "--download-only", *packages
    )


def _apt(work: Path, lists: str, *arguments: str) -> str | None:
    """Runs apt-get on folders below `work`; returns its first complaint if it fails."""
    for folder in ("state", "cache/archives/partial", "lists/partial"):
        (work / folder).mkdir(parents=True, exist_ok=True)
    options = {
        "APT::Get::List-Cleanup": "0",
        "Debug::NoLocking": "1",
        "Dir::Cache": f"{work}/cache",
        "Dir::State": f"{work}/state",
        "Dir::State::lists": lists,
        "Dir::State::status": "/var/lib/dpkg/status",
    }
    done = subprocess.run(
        ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items()), *arguments],
        capture_output=True,
        text=True,
    )
    if done.returncode == 0:
        return None
    complaints = [line for line in done.stderr.splitlines() if line.startswith("E:")]
    return complaints[0] if complaints else f"status {done.returncode}."


def java(tool: str) -> str:
    """A program of a JDK: this machine's, or that of the private Bazel."""
    found = shutil.which(tool)
    if found:
        return found
    private = sorted(cache().glob(f"bazel/*/usr/lib/jvm/java-*/bin/{tool}"))
    assert private, f"This machine has no {tool}: install a JDK."
    return str(private[-1])


def output(command: Sequence[str], env: dict[str, str] | None) -> str:
    """Runs a command and returns what it prints; fails with that if the command does."""
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{command[0]} failed:\n{done.stdout}{done.stderr}"
    return done.stdout
