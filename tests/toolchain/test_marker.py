"""The marker: what changes it, and what must not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import marker
import pytest
from errors import InstallError
from interpreter import Interpreter

_LINUX = Interpreter("/usr/bin/python3.11", "3.11.2 (main)", "linux", "x86_64")


def _text(site_packages: Path, interpreter: Interpreter = _LINUX) -> str:
    return marker.render(marker.create(interpreter, ["lock"], [site_packages]))


def test_two_machines_with_the_same_wheels_agree(
    tmp_path: Path, install_wheel: Callable[..., Path]
) -> None:
    """Neither the folder nor what an installer notes down is in the marker."""
    for name in ("a", "b"):
        install_wheel(tmp_path / name, "torch", "2.13.0+cpu", tag="cp311-cp311-linux_x86_64")
    dist_info = tmp_path / "b" / "torch-2.13.0+cpu.dist-info"
    with open(dist_info / "RECORD", "a") as record:
        record.write("../../../bin/torchrun,sha256=of-a-path,10\n")
        record.write(f"{dist_info.name}/direct_url.json,sha256=of-a-path,10\n")
        record.write(f"{dist_info.name}/REQUESTED,,\n")
        record.write("__pycache__/torch.cpython-311.pyc,,\n")
    elsewhere = Interpreter("/opt/python", _LINUX.version, "linux", "x86_64")
    text = _text(tmp_path / "a")
    assert text == _text(tmp_path / "b", elsewhere)
    assert str(tmp_path) not in text
    (wheel,) = json.loads(text)["wheels"]
    assert wheel["version"] == "2.13.0+cpu"
    assert wheel["tags"] == ["cp311-cp311-linux_x86_64"]


def test_cpu_and_cuda_builds_differ(tmp_path: Path, install_wheel: Callable[..., Path]) -> None:
    """Another local version, and the same version with other contents, are another marker."""
    install_wheel(tmp_path / "cpu", "torch", "2.13.0+cpu")
    install_wheel(tmp_path / "cuda", "torch", "2.13.0")
    install_wheel(tmp_path / "other", "torch", "2.13.0", b"x = 2\n")
    assert len({_text(tmp_path / name) for name in ("cpu", "cuda", "other")}) == 3


@pytest.mark.parametrize(
    "other",
    [
        Interpreter(_LINUX.executable, "3.11.9 (main)", "linux", "x86_64"),
        Interpreter(_LINUX.executable, _LINUX.version, "macos", "x86_64"),
        Interpreter(_LINUX.executable, _LINUX.version, "linux", "aarch64"),
    ],
)
def test_python_and_machine_count(tmp_path: Path, other: Interpreter) -> None:
    """Python's version, the system and the architecture are in the marker."""
    assert _text(tmp_path) != _text(tmp_path, other)


def test_files_without_a_hash_are_hashed(
    tmp_path: Path, install_wheel: Callable[..., Path]
) -> None:
    """A RECORD need not have hashes; then the contents count."""
    digests = []
    for name, content in (("a", b"one"), ("b", b"two"), ("c", b"one")):
        dist_info = install_wheel(tmp_path / name, "thing", "1")
        (tmp_path / name / "data.bin").write_bytes(content)
        with open(dist_info / "RECORD", "a") as record:
            record.write("data.bin,,\n")
        digests.append(marker.content_digest(dist_info))
    assert digests[0] == digests[2] != digests[1]


def test_an_incomplete_installation_is_refused(
    tmp_path: Path, install_wheel: Callable[..., Path]
) -> None:
    """A wheel without RECORD, or without a file that it lists, has no digest."""
    dist_info = install_wheel(tmp_path, "thing", "1")
    with open(dist_info / "RECORD", "a") as record:
        record.write("absent.bin,,\n")
    with pytest.raises(InstallError, match="absent.bin"):
        marker.content_digest(dist_info)
    (dist_info / "RECORD").unlink()
    with pytest.raises(InstallError, match="without a RECORD"):
        marker.content_digest(dist_info)
