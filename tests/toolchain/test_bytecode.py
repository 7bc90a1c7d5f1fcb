"""Byte code: the same bytes wherever and in whatever company a file is compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import bytecode

_SOURCE = """
import os
NAMES = {"a", "b", "c", "os", "path"} and frozenset({"x", "y"})
def f(os=os, path=(1, 2, "os")):
    return [n in {"left", "right"} for n in path if f.__name__ != "f"]
class C:
    path = "a"
"""


def _compile(folder: Path, seed: str, processes: int, more: int) -> dict[str, bytes]:
    folder.mkdir()
    for index in range(3):
        (folder / f"module{index}.py").write_text(_SOURCE.replace("path", f"path{index}"))
    for index in range(more):
        (folder / f"other{index}.py").write_text("import os\n")
    program = f"import bytecode; bytecode.compile_tree({str(folder)!r}, {processes})"
    subprocess.run(
        [sys.executable, "-c", program],
        env={
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": os.path.dirname(bytecode.__file__),
            "PATH": os.environ["PATH"],
        },
        check=True,
    )
    found = (folder / "__pycache__").glob("module*.pyc")
    return {path.name: path.read_bytes() for path in found}


def test_same_bytes(tmp_path: Path) -> None:
    """Neither the folder nor the number of processes nor other files change a file's bytes."""
    first = _compile(tmp_path / "a", "0", 1, 0)
    assert len(first) == 3
    assert first == _compile(tmp_path / "elsewhere", "0", 3, 5)


def test_what_is_no_python_is_left_out() -> None:
    """Templates and Python 2 come in wheels too, and are not compiled."""
    assert bytecode.compile_source(b"print 'x'\n", "x.py") is None
    assert bytecode.compile_source(b"a\0b", "x.py") is None


def test_compiled_modules_import(tmp_path: Path) -> None:
    """Python uses the file, without looking at its source, and names the real source in errors."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "thing.py").write_text("def f(): raise ValueError\n")
    bytecode.compile_files([str(folder / "thing.py")])
    (folder / "thing.py").write_text("this is not read\n")
    program = "import thing, traceback\ntry: thing.f()\nexcept ValueError: traceback.print_exc()"
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(folder), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert str(folder / "thing.py") in result.stderr
