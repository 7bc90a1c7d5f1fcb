"""Making environments: once, whole or not at all, in layers, and in words when it fails."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import install
import pytest
import wheels
from errors import InstallError
from interpreter import Interpreter, clean_environment
from store import cache_root, made_once
from wheels import PipFor

_HASH = "--hash=sha256:" + "0" * 64
_BASE = ("base.lock", f"numpy==2.0 {_HASH}\ntorch==2.13.0+cpu {_HASH}\n")
_TOP = ("top.lock", f"pytest==9.0 {_HASH}\n")


def _installs(folder: Path) -> int:
    log = folder / "installs"
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_layers_import_from_each_other(
    tmp_path: Path, interpreter: Interpreter, fake_pip: Callable[..., PipFor]
) -> None:
    """A layer sees the packages below it; a second call installs nothing."""
    root = tmp_path / "cache"
    for _ in range(2):
        top, site_packages = install.environment(interpreter, root, [_BASE, _TOP], fake_pip())
    assert _installs(tmp_path) == 2
    program = "import numpy, pytest, sys; print(numpy.__file__, pytest.__file__)"
    result = subprocess.run(
        [top / "bin" / "python3.11", "-I", "-c", program], capture_output=True, text=True
    )
    assert result.stdout.split() == [
        str(site_packages[0] / "numpy.py"),
        str(site_packages[1] / "pytest.py"),
    ], result.stderr
    contents = json.loads((top / "marker.json").read_text())
    assert [wheel["name"] for wheel in contents["wheels"]] == ["numpy", "torch", "pytest"]


def test_a_changed_layer_leaves_the_base(
    tmp_path: Path, interpreter: Interpreter, fake_pip: Callable[..., PipFor]
) -> None:
    """Another version of a test tool installs that layer alone."""
    root = tmp_path / "cache"
    first, _ = install.environment(interpreter, root, [_BASE, _TOP], fake_pip())
    other = ("top.lock", _TOP[1].replace("9.0", "9.1"))
    second, _ = install.environment(interpreter, root, [_BASE, other], fake_pip())
    assert first != second
    assert _installs(tmp_path) == 3


def test_byte_code_is_of_the_unchecked_kind(
    tmp_path: Path, interpreter: Interpreter, fake_pip: Callable[..., PipFor]
) -> None:
    """Byte code survives sources with other times: copies, hard links, remote inputs."""
    _, (site_packages,) = install.environment(interpreter, tmp_path / "c", [_BASE], fake_pip())
    compiled = site_packages / "__pycache__" / "numpy.cpython-311.pyc"
    assert compiled.read_bytes()[4:8] == b"\1\0\0\0"


def test_a_version_that_pip_changed_is_refused(
    tmp_path: Path, interpreter: Interpreter, fake_pip: Callable[..., PipFor]
) -> None:
    """What is really installed must be what the lock says, local version included."""

    def cuda(_: Interpreter, venv_python: Path) -> list[str]:
        program = tmp_path / "cuda.py"
        program.write_text((tmp_path / "fake_pip.py").read_text().replace("{version}", "2.0"))
        return [sys.executable, str(program), *fake_pip()(_, venv_python)[2:]]

    with pytest.raises(InstallError, match=r"torch 2\.13\.0\+cpu is not there"):
        install.environment(interpreter, tmp_path / "cache", [_BASE], cuda)
    assert not list((tmp_path / "cache" / "env").glob("*.part"))


def _environment(root: Path, interpreter: Interpreter, pip: PipFor) -> None:
    install.environment(interpreter, root, [_BASE], pip)


def test_two_at_once_install_once(
    tmp_path: Path, interpreter: Interpreter, fake_pip: Callable[..., PipFor]
) -> None:
    """Processes that want the same environment wait for the first and use its result."""
    fork = multiprocessing.get_context("fork")
    arguments = (tmp_path / "cache", interpreter, fake_pip())
    processes = [fork.Process(target=_environment, args=arguments) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert _installs(tmp_path) == 1


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_installation_is_begun_again(
    tmp_path: Path, interpreter: Interpreter, fake_pip: Callable[..., PipFor], sign: int
) -> None:
    """Nothing that was left behind passes for an environment."""
    root = tmp_path / "cache"
    fork = multiprocessing.get_context("fork")

    def hang() -> None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        os.setpgid(0, 0)
        _environment(root, interpreter, fake_pip("hang"))

    process = fork.Process(target=hang)
    process.start()
    while not _installs(tmp_path):
        assert process.is_alive()
        time.sleep(0.05)
    assert _installs(tmp_path) == 1
    # Ctrl-C and Bazel's time-out reach the whole group.
    os.killpg(process.pid, sign)
    process.join()
    assert process.exitcode != 0
    assert not [p for p in (root / "env").iterdir() if install.usable(p)]
    top, _ = install.environment(interpreter, root, [_BASE], fake_pip())
    assert install.usable(top)
    assert not list((root / "env").glob("*.part"))


def test_a_python_that_is_gone(tmp_path: Path) -> None:
    """An environment whose Python was removed from the machine is not used."""
    environment = tmp_path / "env"
    (environment / "bin").mkdir(parents=True)
    (environment / "marker.json").write_text("{}")
    python = environment / "bin" / "python3.11"
    python.symlink_to(sys.executable)
    assert install.usable(environment)
    python.unlink()
    python.symlink_to(tmp_path / "absent")
    assert not install.usable(environment)


def test_a_failed_build_leaves_nothing(tmp_path: Path) -> None:
    """A folder is there whole or not at all."""

    def build(part: Path, _: int) -> None:
        part.mkdir()
        (part / "half").touch()
        raise InstallError("no")

    with pytest.raises(InstallError):
        made_once(tmp_path / "thing", build, Path.exists)
    assert [path.name for path in tmp_path.iterdir()] == ["thing.lock"]


def test_torch_is_looked_for_on_the_cpu_index(
    tmp_path: Path, interpreter: Interpreter, fake_pip: Callable[..., PipFor]
) -> None:
    """Where pip as configured has no CPU build, PyTorch's index is asked for torch alone."""
    for behaviour in ("torch-on-cpu-index", "torch-on-cpu-index-constrained"):
        folder = tmp_path / behaviour
        before = _installs(tmp_path)
        install.environment(interpreter, folder, [_BASE], fake_pip(behaviour))
        assert _installs(tmp_path) - before == 3


def test_torch_that_is_nowhere(
    tmp_path: Path, interpreter: Interpreter, fake_pip: Callable[..., PipFor]
) -> None:
    """The message names the settings of pip that would help."""
    with pytest.raises(InstallError, match=r"PIP_FIND_LINKS.*PIP_EXTRA_INDEX_URL"):
        install.environment(interpreter, tmp_path / "cache", [_BASE], fake_pip("torch-nowhere"))


def test_no_network(
    tmp_path: Path, interpreter: Interpreter, fake_pip: Callable[..., PipFor]
) -> None:
    """pip calls a package missing when no index answers; the network is the cause to name."""
    with pytest.raises(InstallError, match="cannot be reached"):
        install.environment(interpreter, tmp_path / "c", [_BASE], fake_pip("torch-unreachable"))
    assert _installs(tmp_path) == 1


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("OSError: [Errno 28] No space left on device", "disk is full.*RULES_EXECUTORCH_CACHE"),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n"
            "    numpy==2.0 from https://example.org/numpy.whl:\n",
            "for numpy==2.0 is not the locked one",
        ),
        ("SSLError(SSLCertVerificationError(1, 'CERTIFICATE_VERIFY_FAILED'))", "PIP_CERT"),
        ("NewConnectionError: Failed to establish a new connection", "cannot be reached"),
        ("ERROR: No matching distribution found for numpy==2.0", "no wheel of numpy"),
        (
            "ERROR: Cannot install numpy==2.0 because these package versions have conflicting "
            "dependencies.\n    The user requested (constraint) numpy<=3\n"
            "ERROR: ResolutionImpossible: for help visit",
            "no wheel of numpy.*PIP_CONSTRAINT",
        ),
        ("Something else", "pip could not install"),
    ],
)
def test_failures_in_words(output: str, message: str) -> None:
    """Each way in which pip fails is told with what to do about it."""
    assert re.search(message, wheels.explain(output), re.DOTALL)


def test_nothing_of_the_user_leaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """pip's settings reach pip; what configures Python itself does not."""
    monkeypatch.setenv("PIP_FIND_LINKS", "/wheels")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    monkeypatch.setenv("PYTHONPATH", "/evil")
    monkeypatch.setenv("PYTHONSTARTUP", "/evil.py")
    env = clean_environment()
    assert env["PIP_FIND_LINKS"] == "/wheels"
    assert env["HTTPS_PROXY"] == "http://proxy"
    assert "PYTHONPATH" not in env and "PYTHONSTARTUP" not in env
    assert env["PYTHONNOUSERSITE"] == "1"


def test_where_environments_lie(capsys: pytest.CaptureFixture[str]) -> None:
    """The cache's folder: its own variable, the user's cache, or a folder that is announced."""
    home = {"HOME": "/home/a"}
    xdg = {"XDG_CACHE_HOME": "/xdg"} | home
    own = {"RULES_EXECUTORCH_CACHE": "/own"} | xdg
    assert cache_root(own) == Path("/own")
    assert cache_root(xdg) == Path("/xdg/rules_executorch")
    assert cache_root(home) == Path("/home/a/.cache/rules_executorch")
    assert not capsys.readouterr().err
    assert cache_root({}) == Path(f"/var/tmp/rules_executorch-{os.getuid()}")
    assert "HOME is not set" in capsys.readouterr().err


def test_the_command_line_reports_a_refusal(tmp_path: Path) -> None:
    """A lock that is none gives a sentence, status 1 and no traceback."""
    (tmp_path / "bad.lock").write_text("torch\n")
    result = subprocess.run(
        [
            sys.executable,
            install.__file__,
            f"--lock={tmp_path / 'bad.lock'}",
            f"--result={tmp_path / 'result.json'}",
        ],
        env=clean_environment() | {"RULES_EXECUTORCH_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert "ERROR: bad.lock has the line" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "result.json").exists()
