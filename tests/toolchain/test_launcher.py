"""The launcher: finds its packages however it was reached, and lets nothing of the user in."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from interpreter import create_venv

_LAUNCHER = Path("executorch/private/toolchain/launcher.sh")
_REGISTERED = Path(os.environ["LAUNCHER"])
_PROGRAM = """
import json, os, sys
print(json.dumps([sys.prefix, sys.path, sys.flags.no_user_site, sys.flags.hash_randomization,
                  sorted(name for name in os.environ if name.startswith("PYTHON"))]))
"""
_HOSTILE = {
    "PYTHONPATH": "/evil",
    "PYTHONHOME": "/evil",
    "PYTHONSTARTUP": "/evil/start.py",
    "PYTHONUSERBASE": "/evil",
    "PYTHONOPTIMIZE": "2",
    "PYTHONHASHSEED": "7",
    "VIRTUAL_ENV": "/evil",
    "PATH": "/usr/bin:/bin",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository in pinned mode, with an empty venv in the place of the installed one."""
    folder = tmp_path / "repository"
    folder.mkdir()
    shutil.copy(_LAUNCHER, folder / "launcher")
    create_venv(tmp_path / "cache")
    (folder / "environment").symlink_to(tmp_path / "cache")
    return folder


def _run(launcher: Path | str, cwd: Path, env: dict[str, str]) -> list:
    result = subprocess.run(
        [launcher, "-c", _PROGRAM], cwd=cwd, env=env, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("env", [{}, _HOSTILE], ids=["bare", "hostile"])
def test_isolation(repository: Path, tmp_path: Path, env: dict[str, str]) -> None:
    """Variables of the user's and the working directory change nothing."""
    (tmp_path / "json.py").write_text("raise SystemExit('imported from the working directory')")
    prefix, path, no_user_site, randomized, variables = _run(repository / "launcher", tmp_path, env)
    assert prefix == str(repository / "environment")
    assert "" not in path and not [place for place in path if "evil" in place]
    assert no_user_site == 1
    assert randomized == 0
    assert variables == ["PYTHONHASHSEED"]


def test_reached_by_a_link_and_by_a_relative_path(repository: Path, tmp_path: Path) -> None:
    """A sandbox and runfiles link to the launcher alone."""
    link = tmp_path / "sandbox" / "external" / "launcher"
    link.parent.mkdir(parents=True)
    link.symlink_to(repository / "launcher")
    for launcher in (link, "sandbox/external/launcher"):
        assert _run(launcher, tmp_path, {})[0] == str(repository / "environment")


def test_a_removed_environment(repository: Path, tmp_path: Path) -> None:
    """A sentence says what to do when the folder in the cache was removed."""
    shutil.rmtree(tmp_path / "cache")
    result = subprocess.run([repository / "launcher", "-c", ""], capture_output=True, text=True)
    assert result.returncode == 1
    assert "bazel fetch" in result.stderr


def test_the_same_bytes_everywhere() -> None:
    """The launcher is part of the keys of actions, so it names no folder of this machine."""
    assert _REGISTERED.read_bytes() == _LAUNCHER.read_bytes()


def test_the_registered_toolchain_has_the_locked_packages() -> None:
    """Actions of this repository get the versions of the lock."""
    program = (
        "from importlib.metadata import version\n"
        "print(version('executorch'), version('transformers'), version('torch'))"
    )
    result = subprocess.run([_REGISTERED, "-c", program], capture_output=True, text=True)
    assert result.stdout.split() == ["1.5.1", "5.24.0", "2.13.0+cpu"], result.stderr
