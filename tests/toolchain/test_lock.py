"""The lock command: how pip's configuration becomes uv's, and what a layer locks."""

from __future__ import annotations

from pathlib import Path

import lock
import pytest
from lockfile import Requirement

_CONFIG = """\
:env:.find-links='/wheels'
global.cert='/etc/ca.crt'
global.extra-index-url='file:///mirror/simple https://index.example.org/simple'
global.find-links='/overridden'
global.index-url='https://main.example.org/simple'
install.index-url='https://more-specific.example.org/simple'
freeze.timeout='10'
"""


def test_pip_settings_for_uv() -> None:
    """The environment wins over a section, a section over `global`; certificates go along."""
    options, variables = lock.pip_options(_CONFIG, {})
    assert options == [
        "--default-index",
        "https://more-specific.example.org/simple",
        "--index",
        "https://index.example.org/simple",
        "--find-links",
        "/wheels",
    ]
    assert variables == {"SSL_CERT_FILE": "/etc/ca.crt"}


def test_without_pip_the_environment_counts() -> None:
    """A venv without pip can still hand over PIP_*."""
    assert lock.pip_options("", {"PIP_FIND_LINKS": "/a /b"}) == (
        ["--find-links", "/a", "--find-links", "/b"],
        {},
    )
    assert lock.pip_options("", {}) == ([], {})


def test_a_layer_locks_what_is_new() -> None:
    """What the base has is left out, unless the layer needs another version of it."""
    base = [Requirement("numpy", "2.0", ()), Requirement("jsonschema", "4.26.0", ())]
    new = Requirement("pytest", "9.0", ())
    older = Requirement("jsonschema", "4.24.0", ())
    assert lock.on_top([*base, new], base) == [new]
    assert lock.on_top([base[0], older, new], base) == [older, new]


@pytest.mark.parametrize(
    ("version", "local", "fits"),
    [("2.13.0+cpu", "cpu", True), ("2.13.0", "cpu", False), ("2.13.0", None, True)],
)
def test_only_the_cpu_build_is_locked(version: str, local: str | None, fits: bool) -> None:
    """The plain version is a CUDA build on Linux and the CPU build elsewhere."""
    platform = lock.Platform("any", local)
    assert lock.check_torch([Requirement("torch", version, ())], platform) == fits


def test_a_group_may_ask_for_what_the_base_excludes() -> None:
    """Tests use hypothesis, which the base leaves out of executorch's requirements."""
    excludes = "# tests\nhypothesis\nkgb\n"
    assert lock.without(excludes, "pytest\nhypothesis>=6\n") == "# tests\nkgb\n"


def test_names_of_locks() -> None:
    """The base is the lock of requirements.in; a group's lies beside its .in file."""
    folder = Path("tools/toolchain")
    base = folder / "requirements_linux_x86_64_cp311.lock"
    assert lock.lock_path(folder, "", "linux_x86_64") == base
    group = folder / "groups" / "dev_linux_x86_64_cp311.lock"
    assert lock.lock_path(folder, "dev", "linux_x86_64") == group
