"""Things the installer works on: interpreters, installed wheels, a pip that fetches nothing."""

from __future__ import annotations

import base64
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from interpreter import Interpreter, running
from wheels import PipFor


@pytest.fixture
def interpreter() -> Interpreter:
    """The Python that runs the tests."""
    return running()


@pytest.fixture
def install_wheel() -> Callable[..., Path]:
    """Writes what an installer leaves behind of a wheel with one module."""

    def write(
        site_packages: Path, name: str, version: str, content: bytes = b"x = 1\n", tag: str = ""
    ) -> Path:
        module = site_packages / f"{name}.py"
        dist_info = site_packages / f"{name}-{version}.dist-info"
        dist_info.mkdir(parents=True)
        module.write_bytes(content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        (dist_info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n\nText")
        (dist_info / "WHEEL").write_text(f"Wheel-Version: 1.0\nTag: {tag or 'py3-none-any'}\n")
        (dist_info / "INSTALLER").write_text("pip\n")
        (dist_info / "RECORD").write_text(
            f"{module.name},sha256={digest},{len(content)}\n"
            f"{dist_info.name}/METADATA,sha256=abc,3\n"
            f"{dist_info.name}/INSTALLER,sha256=abc,4\n"
            f"{dist_info.name}/RECORD,,\n"
        )
        return dist_info

    return write


FAKE_PIP = """
import pathlib, re, sys, time

counter, site_packages, behaviour = sys.argv[1:4]
with open(counter, "a") as file:
    file.write("install\\n")
text = pathlib.Path(sys.argv[-1].partition("=")[2]).read_text()
folder = pathlib.Path(site_packages)
on_cpu_index = behaviour.startswith("torch-on-cpu-index") and "--extra-index-url" in sys.argv
if behaviour.startswith("torch-") and "torch==" in text and not on_cpu_index:
    if not (folder / "torch.py").exists():
        if behaviour == "torch-unreachable":
            print("WARNING: Retrying after NewConnectionError")
        if behaviour.endswith("-constrained"):
            print("ERROR: Cannot install torch==2.13.0+cpu because these package versions conflict")
            sys.exit("ERROR: ResolutionImpossible: for help visit")
        sys.exit("ERROR: No matching distribution found for torch==2.13.0+cpu")
if behaviour == "hang":
    time.sleep(600)
for name, version in re.findall(r"^([a-z0-9-]+)==([^ ]+)", text, re.M):
    print(f"Collecting {name}=={version}")
    dist_info = folder / f"{name}-{version}.dist-info"
    dist_info.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text("x = 1")
    (dist_info / "METADATA").write_text(f"Name: {name}\\nVersion: {version}\\n")
    (dist_info / "WHEEL").write_text("Tag: py3-none-any\\n")
    (dist_info / "RECORD").write_text(f"{name}.py,sha256=abc,5\\n")
    time.sleep(0.2)
"""


@pytest.fixture
def fake_pip(tmp_path: Path) -> Callable[..., PipFor]:
    """Makes a stand-in for pip.

    It writes empty packages for the lock that it is given, or does what `behaviour` names, and
    appends a line to `tmp_path/installs` for each call.
    """
    program = tmp_path / "fake_pip.py"
    program.write_text(FAKE_PIP)

    def behaving(behaviour: str = "") -> PipFor:
        def command(_: Interpreter, venv_python: Path) -> list[str]:
            site_packages = venv_python.parent.parent / "lib" / "python3.11" / "site-packages"
            log = tmp_path / "installs"
            return [sys.executable, str(program), str(log), str(site_packages), behaviour]

        return command

    return behaving
