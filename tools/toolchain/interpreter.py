"""Which Python and which machine an environment is made for."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import platform
import subprocess
import sys
from pathlib import Path

from errors import InstallError

PYTHON = (3, 11)
"""The Python whose wheels the locks hold."""

_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}
_SYSTEMS = {"darwin": "macos"}


@dataclasses.dataclass(frozen=True)
class Interpreter:
    """A Python found on the machine.

    Attributes:
        executable: the real one, not a venv's link to it.
        version: `sys.version`, whole.
        os: `linux` or `macos`, as in @platforms//os.
        arch: `x86_64` or `aarch64`, as in @platforms//cpu.
    """

    executable: str
    version: str
    os: str
    arch: str


def running() -> Interpreter:
    """The interpreter that runs this file.

    Raises:
        InstallError: it is not a CPython of the locks' version.
    """
    wanted = ".".join(map(str, PYTHON))
    if sys.version_info[:2] != PYTHON or sys.implementation.name != "cpython":
        raise InstallError(
            f"{sys.executable} is {sys.implementation.name} {platform.python_version()}, and the "
            f"locked wheels are for CPython {wanted}. Install Python {wanted}, or set "
            "RULES_EXECUTORCH_PYTHON to the path of one."
        )
    system, machine = platform.system().lower(), platform.machine().lower()
    return Interpreter(
        executable=getattr(sys, "_base_executable", sys.executable),
        version=sys.version,
        os=_SYSTEMS.get(system, system),
        arch=_ARCHITECTURES.get(machine, machine),
    )


def clean_environment() -> dict[str, str]:
    """The environment for child processes.

    Everything that configures pip stays (PIP_*, proxies, certificates); everything that would
    make another Python's packages importable goes.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    env.pop("VIRTUAL_ENV", None)
    env.pop("__PYVENV_LAUNCHER__", None)
    env.update(PYTHONNOUSERSITE="1", PYTHONUNBUFFERED="1", PYTHONDONTWRITEBYTECODE="1")
    return env


def create_venv(folder: Path) -> Path:
    """Makes a venv without pip in `folder` and returns its Python.

    Raises:
        InstallError: this Python has no venv module.
    """
    try:
        import venv
    except ImportError as error:
        raise InstallError(
            f"{sys.executable} has no venv module. Install it (Debian and Ubuntu: "
            "`apt-get install python3.11-venv`), or set RULES_EXECUTORCH_PYTHON to a Python "
            "that has it."
        ) from error
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    return folder / "bin" / "python{}.{}".format(*PYTHON)


def pip_command(interpreter: Interpreter, venv_python: Path) -> list[str]:
    """The command that runs pip for a venv that has none itself.

    Taken from the machine's Python if it has a pip that knows `--python` (22.3), else from the
    wheel that ensurepip carries.

    Raises:
        InstallError: neither exists.
    """
    probe = subprocess.run(
        [interpreter.executable, "-m", "pip", "--version"],
        env=clean_environment(),
        capture_output=True,
        text=True,
    )
    words = probe.stdout.split()
    if probe.returncode == 0 and len(words) > 1 and _at_least(words[1], (22, 3)):
        return [interpreter.executable, "-m", "pip", "--python", str(venv_python)]
    wheel = _bundled_pip()
    if wheel:
        return [str(venv_python), f"{wheel}/pip"]
    raise InstallError(
        f"{interpreter.executable} has neither pip nor ensurepip. Install one of them (Debian and "
        "Ubuntu: `apt-get install python3.11-venv` or `python3-pip`), or set "
        "RULES_EXECUTORCH_PYTHON to a Python that has it."
    )


def _at_least(version: str, minimum: tuple[int, int]) -> bool:
    parts = version.split(".")
    try:
        return (int(parts[0]), int(parts[1])) >= minimum
    except (IndexError, ValueError):
        return False


def _bundled_pip() -> Path | None:
    spec = importlib.util.find_spec("ensurepip")
    if spec is None or spec.origin is None:
        return None
    import ensurepip

    folders = [Path(spec.origin).parent / "_bundled"]
    distribution = getattr(ensurepip, "_WHEEL_PKG_DIR", None)
    if distribution:
        folders.insert(0, Path(distribution))
    for folder in folders:
        wheels = sorted(folder.glob("pip-*.whl"))
        if wheels:
            return wheels[-1]
    return None
