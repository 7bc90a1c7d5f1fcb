"""Tests lie where what they test does: `tests/python` has the folders of the packages."""

from __future__ import annotations

from pathlib import Path

import lint

ROOT = lint.checkout()

OF_NO_PACKAGE = {"fuzz": "reads hostile files with every reader at once"}
"""Folders of tests that go through several packages, and what for."""

OF_ANOTHER_PLACE = {"hub": "tests/hub, beside the tests of the module extension"}
"""Packages whose tests share what they need with tests in Starlark, and where they are."""


def _folders(folder: str, holds: str) -> set[str]:
    files = lint.tracked(ROOT, f"{folder}/*/{holds}")
    return {Path(file).relative_to(folder).parts[0] for file in files}


def test_every_package_has_its_tests_and_every_folder_of_tests_its_package() -> None:
    packages = _folders("python/rules_executorch", "__init__.py")
    assert packages - OF_ANOTHER_PLACE.keys() == (
        _folders("tests/python", "test_*.py") - OF_NO_PACKAGE.keys()
    )
    assert OF_ANOTHER_PLACE.keys() <= packages
    assert all(lint.tracked(ROOT, f"tests/{package}/test_*.py") for package in OF_ANOTHER_PLACE)
