"""The traps themselves: each of them springs. Where they must not, see test_reproducible.py."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from nested import environment
from traps import Traps


@pytest.fixture
def traps(tmp_path: Path) -> Iterator[Traps]:
    with Traps(tmp_path) as traps:
        yield traps


def test_nothing_is_sprung_by_setting_them(traps: Traps) -> None:
    assert traps.sprung() == []


def test_code_on_the_path_springs(traps: Traps) -> None:
    python = os.path.realpath(sys.executable)
    env = environment() | traps.variables | {"HOME": str(traps.home)}
    subprocess.run([python, "-c", "pass"], env=env, capture_output=True)
    assert [line for line in traps.sprung() if line.startswith("sitecustomize ran in ")]


def test_code_of_the_users_site_packages_springs(traps: Traps) -> None:
    python = os.path.realpath(sys.executable)
    env = environment() | {"HOME": str(traps.home)}
    subprocess.run([python, "-c", "import usercustomize"], env=env, capture_output=True)
    assert [line for line in traps.sprung() if line.startswith(("site", "usercustomize ran in "))]


def test_a_file_that_is_read_springs(traps: Traps) -> None:
    traps.netrc.read_text()
    (traps.home / ".cache/huggingface/token").read_text()
    assert [Path(line).name for line in traps.sprung()] == ["netrc", "token"]


def test_a_connection_springs(traps: Traps) -> None:
    with pytest.raises(OSError):
        urllib.request.urlopen(traps.variables["HF_ENDPOINT"])
    assert traps.sprung() == ["1 connections"]
