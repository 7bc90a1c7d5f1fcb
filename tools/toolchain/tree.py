"""A copy of a whole Python with its packages, of which every file can be an input of an action.

The copy runs wherever it lies, given PYTHONHOME: interpreter, shared library, standard library
and the packages of all layers, with byte code. What no action reads is left out, since each file
costs time in every action: tests, headers, static libraries, graphical toolkits.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from interpreter import PYTHON, Interpreter, clean_environment
from store import say

_NAME = "python{}.{}".format(*PYTHON)

_STDLIB_WITHOUT = {
    "__pycache__",
    "dist-packages",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "site-packages",
    "test",
    "tkinter",
    "turtledemo",
}
_PACKAGES_WITHOUT = {
    "torch/include",
    "torch/share",
    "executorch/include",
    "executorch/share",
}
_WITHOUT_SUFFIXES = (".a", ".cuh", ".h", ".hpp", ".pth", ".pyi")
_TESTS_OF = {"mpmath", "networkx", "numpy", "pandas", "sympy"}

# A folder with one of these is a package or a repository of its own for Bazel, and a glob stops.
_BAZEL_FILES = {"BUILD", "BUILD.bazel", "MODULE.bazel", "REPO.bazel", "WORKSPACE"}

# Packages by layer; the distribution's own site module would look elsewhere.
_SITECUSTOMIZE = '''"""Adds the packages of this tree, wherever the tree lies."""

import os
import site
import sys

site.addsitedir(os.path.join(sys.prefix, "lib", "{name}", "site-packages"))
'''


def create(
    target: Path, interpreter: Interpreter, site_packages: Sequence[Path], bytecode: Path
) -> None:
    """Fills `target` with a Python of its own.

    Args:
        target: a folder that does not exist.
        interpreter: the Python that the environment was made from.
        site_packages: the layers of the environment, from the base to the top.
        bytecode: the program that compiles a folder.
    """
    lib = target / "lib" / _NAME
    lib.mkdir(parents=True)
    (target / "bin").mkdir()
    say("copying the interpreter and its standard library")
    shutil.copy(os.path.realpath(interpreter.executable), target / "bin" / _NAME)
    for library in _shared_libraries():
        shutil.copy(library, target / "lib" / library.name)
    stdlib = Path(sysconfig.get_path("stdlib"))
    for path in _files(stdlib, _in_stdlib):
        _place(stdlib / path, lib / path, link=False)
    (lib / "sitecustomize.py").write_text(_SITECUSTOMIZE.format(name=_NAME), encoding="ascii")
    subprocess.run(
        [interpreter.executable, "-s", "-P", bytecode, lib],
        env=clean_environment() | {"PYTHONHASHSEED": "0"},
        check=True,
    )
    say("linking the packages")
    # The top layer wins, as it does on sys.path.
    for folder in reversed(site_packages):
        for path in _files(folder, _in_packages):
            destination = lib / "site-packages" / path
            if not destination.exists():
                _place(folder / path, destination, link=True)


def _shared_libraries() -> Iterator[Path]:
    name, folder = sysconfig.get_config_var("INSTSONAME"), sysconfig.get_config_var("LIBDIR")
    if name and folder and ".so" in name and Path(folder, name).exists():
        yield Path(folder, name)


def _in_stdlib(path: Path) -> bool:
    parts = path.parts
    return not (_STDLIB_WITHOUT & set(parts) or parts[0].startswith("config-"))


def _in_packages(path: Path) -> bool:
    parts = path.parts
    if "/".join(parts[:2]) in _PACKAGES_WITHOUT or path.name in _BAZEL_FILES:
        return False
    if parts[0] in _TESTS_OF and "tests" in parts[:-1]:
        return False
    return not path.name.endswith(_WITHOUT_SUFFIXES)


def _files(root: Path, wanted: Callable[[Path], bool]) -> Iterator[Path]:
    for folder, folders, files in os.walk(root, followlinks=False):
        folders.sort()
        relative = Path(folder).relative_to(root)
        for name in sorted(files):
            if wanted(relative / name):
                yield relative / name


def _place(source: Path, destination: Path, *, link: bool) -> None:
    destination.parent.mkdir(parents=True, exist_ok=True)
    if link:
        try:
            os.link(source, destination)
            return
        except OSError:
            # Another file system, or one without hard links.
            pass
    shutil.copyfile(source, destination)
    shutil.copymode(source, destination)
