"""Byte code beside its sources, the same bytes on every machine.

The files are of the unchecked-hash kind (PEP 552): they hold whatever the times of the sources
say, so they survive copies, hard links and remote inputs.

compileall's files are not reproducible: whether `marshal` marks an object as shared depends on
reference counts, and so on what else the process has in memory. Here each batch of files is
compiled in a process forked from the same parent, and under PYTHONHASHSEED=0 (the order of
frozensets), so that the process has the same things in memory everywhere.

Run as a program, compiles the modules under a folder with the Python that runs it.
"""

from __future__ import annotations

import importlib.util
import marshal
import multiprocessing
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

_UNCHECKED_HASH = (1).to_bytes(4, "little")
_BATCH = 200


def compile_source(source: bytes, name: str) -> bytes | None:
    """The contents of a .pyc file, or None where the source is no Python of this version.

    Args:
        source: the module's text.
        name: the file name in the code; the importer replaces it by the real one.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = compile(source, name, "exec", dont_inherit=True, optimize=0)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return b"".join(
        [
            importlib.util.MAGIC_NUMBER,
            _UNCHECKED_HASH,
            importlib.util.source_hash(source),
            marshal.dumps(code),
        ]
    )


def compile_files(paths: Sequence[str]) -> None:
    """Writes `__pycache__/NAME.cpython-XY.pyc` for each of the files."""
    for path in paths:
        target = importlib.util.cache_from_source(path, optimization="")
        compiled = compile_source(Path(path).read_bytes(), os.path.basename(path))
        if compiled is None:
            continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        Path(target).write_bytes(compiled)


def compile_tree(root: str, processes: int | None = None) -> None:
    """Compiles every module under `root`; what exists is replaced.

    Args:
        root: the folder.
        processes: at once, by default one for each core.
    """
    sources = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        sources += [os.path.join(folder, name) for name in sorted(files) if name.endswith(".py")]
    batches = [sources[i : i + _BATCH] for i in range(0, len(sources), _BATCH)]
    fork = multiprocessing.get_context("fork")
    with fork.Pool(processes, maxtasksperchild=1) as pool:
        pool.map(compile_files, batches, chunksize=1)


if __name__ == "__main__":
    compile_tree(sys.argv[1])
