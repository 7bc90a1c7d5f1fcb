"""Installing a lock's wheels with pip, as pip is configured on the machine."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import urllib.parse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from errors import InstallError
from interpreter import Interpreter, clean_environment, pip_command
from lockfile import Requirement
from store import say

PipFor = Callable[[Interpreter, Path], list[str]]
"""Finds the command that runs pip for a venv's Python."""

TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
"""PyTorch's index of CPU builds: asked only where pip, as configured, finds no CPU build."""

# pip says "Collecting" of what an index serves and "Processing" of what lies in a folder.
_COLLECTING = re.compile(
    r"^(?:Collecting (?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;]+)"
    r"|Processing \S*/(?P<wheel>[^/]+?-[^/]+?)-[^/\s]+\.whl)"
)
_FETCHING = re.compile(r"^\s+Downloading \S+ \((?P<size>[^)]+)\)")
# The last is what pip says of a wheel that it does not find where it has constraints as well.
_MISSING = re.compile(
    r"(?:No matching distribution found for|Could not find a version that satisfies the "
    r"requirement|Cannot install) (?P<name>[A-Za-z0-9._-]+)"
)
_CONSTRAINED = ", and see that the constraints of pip's settings (PIP_CONSTRAINT) allow it"
_MISMATCH = re.compile(r"^\s+(?P<requirement>[A-Za-z0-9._-]+==\S+) from ", re.MULTILINE)
_NETWORK = (
    "NewConnectionError",
    "Failed to establish a new connection",
    "Temporary failure in name resolution",
    "Name or service not known",
    "ConnectTimeoutError",
    "Connection refused",
    "Network is unreachable",
    "Read timed out",
    "ProxyError",
)
_CERTIFICATES = ("CERTIFICATE_VERIFY_FAILED", "SSLCertVerificationError")
_DISK = ("No space left on device", "Errno 28", "Disk quota exceeded")


class _PipFailed(Exception):
    def __init__(self, output: str) -> None:
        self.output = output
        missing = _MISSING.search(output)
        self.missing = missing["name"].lower() if missing else None
        super().__init__(output)


def install(
    interpreter: Interpreter,
    venv_python: Path,
    requirements: Sequence[Requirement],
    lock_descriptor: int,
    pip_for: PipFor = pip_command,
) -> None:
    """Installs exactly `requirements` into the venv of `venv_python`, wheels only, by hash.

    Args:
        interpreter: the Python that the venv was made from.
        venv_python: the venv's Python.
        requirements: the lock.
        lock_descriptor: kept open by pip, so that the folder stays locked while pip lives.
        pip_for: finds the command that runs pip; by default the machine's.

    Raises:
        InstallError: pip failed; says why and what to configure.
    """
    pip = pip_for(interpreter, venv_python)
    torch = [requirement for requirement in requirements if requirement.name == "torch"]
    # First, so that a missing CPU build is found before anything is downloaded.
    requirements = torch + [r for r in requirements if r.name != "torch"]
    try:
        _run(pip, requirements, [], lock_descriptor)
    except _PipFailed as failure:
        if failure.missing != "torch" or _has_any(_NETWORK, failure.output):
            raise InstallError(explain(failure.output)) from failure
        say("pip as configured has no CPU build of torch; asking PyTorch's index of CPU builds.")
        try:
            _run(pip, torch, ["--extra-index-url", TORCH_CPU_INDEX], lock_descriptor)
            _run(pip, requirements, [], lock_descriptor)
        except _PipFailed as second:
            if second.missing != "torch":
                raise InstallError(explain(second.output)) from second
            raise InstallError(
                f"The CPU build torch {torch[0].version} was found neither by pip as configured "
                "nor on PyTorch's index of CPU builds. Set PIP_FIND_LINKS to a folder that has "
                "the wheel, or PIP_EXTRA_INDEX_URL to an index that has it; its hash is in the "
                f"lock.\n{_tail(second.output)}"
            ) from second


def _run(
    pip: Sequence[str], requirements: Sequence[Requirement], options: Sequence[str], lock: int
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        lockfile = Path(scratch, "requirements.lock")
        lockfile.write_text("".join(r.render() for r in requirements), encoding="ascii")
        process = subprocess.Popen(
            [
                *pip,
                "install",
                "--no-deps",
                "--require-hashes",
                "--only-binary=:all:",
                "--no-compile",
                "--no-input",
                "--no-warn-script-location",
                "--disable-pip-version-check",
                "--progress-bar=off",
                *options,
                f"--requirement={lockfile}",
            ],
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            pass_fds=[lock],
        )
        try:
            assert process.stdout is not None
            output = _follow(process.stdout, len(requirements))
            status = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if status != 0:
        raise _PipFailed(output)


def _follow(lines: Iterable[str], total: int) -> str:
    """Turns pip's output into progress, and returns it whole."""
    output, count, current = [], 0, ""
    for line in lines:
        output.append(line)
        if match := _COLLECTING.match(line):
            count += 1
            name = match["wheel"] or f"{match['name']}-{match['version']}"
            current = f"[{count}/{total}] {urllib.parse.unquote(name)}"
            say(current)
        elif match := _FETCHING.match(line):
            if match["size"].endswith("MB"):
                say(f"{current}: downloading {match['size']}")
        elif line.startswith("Installing collected packages"):
            say(f"unpacking {total} packages")
    return "".join(output)


def _tail(output: str) -> str:
    return "\n".join(line for line in output.splitlines()[-15:] if line.strip())


def _has_any(signs: Iterable[str], output: str) -> bool:
    return any(sign in output for sign in signs)


def explain(output: str) -> str:
    """Why pip failed, from its output, and what to do about it."""
    tail = _tail(output)
    if _has_any(_DISK, output):
        return (
            "The disk is full: the environment needs about 3 GB. Free some space, or set "
            "RULES_EXECUTORCH_CACHE to a folder on another disk."
        )
    if "DO NOT MATCH THE HASHES" in output:
        named = sorted({match["requirement"] for match in _MISMATCH.finditer(output)})
        return (
            f"The file that pip was given for {', '.join(named) or 'a package'} is not the locked "
            "one: its sha256 differs, so it was not installed. Empty pip's cache (`pip cache "
            "purge`) and try again; if it persists, the index or PIP_FIND_LINKS folder serves "
            f"another file under that name.\n{tail}"
        )
    if _has_any(_CERTIFICATES, output):
        return (
            "The package index has a certificate that this machine does not trust. Set PIP_CERT "
            f"to your organisation's CA bundle, as for pip itself.\n{tail}"
        )
    if _has_any(_NETWORK, output):
        return (
            "The package index cannot be reached. Check the network, or configure pip for your "
            "mirror (PIP_INDEX_URL, PIP_FIND_LINKS, HTTPS_PROXY); the download happens once per "
            f"machine.\n{tail}"
        )
    if match := _MISSING.search(output):
        return (
            f"pip finds no wheel of {match['name']} for this machine ({sys.platform}) at the "
            "locked version. Point PIP_INDEX_URL or PIP_FIND_LINKS at a place that has it"
            f"{_CONSTRAINED if '(constraint)' in output else ''}.\n{tail}"
        )
    return f"pip could not install the locked wheels:\n{tail}"
