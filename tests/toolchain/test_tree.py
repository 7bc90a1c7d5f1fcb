"""The copy of a whole Python: complete, relocatable, and without what Bazel would trip over."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import tree
from interpreter import Interpreter

_BYTECODE = Path(tree.__file__).with_name("bytecode.py")


@pytest.fixture
def layers(tmp_path: Path) -> list[Path]:
    """Two site-packages folders; the upper one has another version of a module."""
    files = {
        "base/thing/__init__.py": "WHERE = 'base'",
        "base/thing/BUILD": "",
        "base/thing/data.txt": "data",
        "base/other.py": "WHERE = 'base'",
        "base/thing/header.h": "",
        "base/sympy/tests/test_it.py": "",
        "base/torch/tests/kept.py": "",
        "top/other.py": "WHERE = 'top'",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [tmp_path / "base", tmp_path / "top"]


def test_tree(tmp_path: Path, interpreter: Interpreter, layers: list[Path]) -> None:
    """It runs from another folder, as links to single files too, with its own library only."""
    made = tmp_path / "made"
    tree.create(made, interpreter, layers, _BYTECODE)
    packages = made / "lib" / "python3.11" / "site-packages"
    assert (packages / "thing" / "data.txt").exists()
    assert (packages / "torch" / "tests" / "kept.py").exists()
    assert not (packages / "thing" / "BUILD").exists()
    assert not (packages / "thing" / "header.h").exists()
    assert not (packages / "sympy" / "tests").exists()
    assert os.path.samefile(packages / "thing" / "data.txt", layers[0] / "thing" / "data.txt")
    assert (made / "lib/python3.11/__pycache__/os.cpython-311.pyc").exists()

    moved = tmp_path / "moved"
    made.rename(moved)
    linked = tmp_path / "linked"
    shutil.copytree(moved, linked, copy_function=os.symlink)
    program = (
        "import json, other, os, sqlite3, ssl, sys, thing\n"
        "print(json.dumps([other.WHERE, thing.WHERE, os.__file__, *sys.path]))"
    )
    for root in (moved, linked):
        result = subprocess.run(
            [root / "bin" / "python3.11", "-s", "-P", "-c", program],
            env={"PYTHONHOME": str(root), "LD_LIBRARY_PATH": str(root / "lib")},
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stderr
        upper, lower, *places = json.loads(result.stdout)
        assert (upper, lower) == ("top", "base")
        assert all(place.startswith(f"{root}/") for place in places), places
