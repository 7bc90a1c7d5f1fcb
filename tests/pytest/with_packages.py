"""Runs pytest on the packages of a group; see packages_test.bzl.

The toolchain's launcher gives a Python that has the group's packages and ignores PYTHONPATH, so
this adds the folder of the package under test.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    folder, main, *arguments = sys.argv[1:]
    sys.path[:0] = [folder, str(Path(main).parent)]
    sys.argv = [main, *arguments]
    runpy.run_path(main, run_name="__main__")
