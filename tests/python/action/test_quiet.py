"""Remarks of libraries that no user can do anything about are not heard; warnings are."""

import subprocess
import sys

PROGRAM = """
import logging

from rules_executorch.action.quiet import quiet_libraries

quiet_libraries()
logging.basicConfig(level=logging.INFO)
logging.getLogger().setLevel(logging.INFO)
logging.info("a remark")
logging.getLogger("library").warning("a warning")
logging.getLogger("torchao").setLevel(logging.WARNING)
logging.getLogger("torchao").warning("a remark")
"""

LOADING = """
import os

from rules_executorch.action.quiet import quiet_loading

with quiet_loading():
    os.write(2, b"a library was loaded\\n")
os.write(2, b"later\\n")
with quiet_loading():
    os.write(2, b"a library was not loaded\\n")
    raise SystemExit(1)
"""


def run(program: str) -> str:
    """What a program writes on standard error."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stderr


def test_remarks_are_silent_and_warnings_are_not() -> None:
    assert run(PROGRAM) == "WARNING:library:a warning\n"


def test_libraries_are_loaded_without_remarks_unless_they_are_not() -> None:
    assert run(LOADING) == "later\na library was not loaded\n"
