"""mypy reads python/ and tools/ with this repository's settings, and finds what is wrong there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import lint
import pytest

ROOT = lint.checkout()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with one module in each of the two folders."""
    shutil.copy(ROOT / "mypy.ini", tmp_path)
    for module, source in {
        "python/rules_executorch/sizes.py": "def size() -> int:\n    return 1\n",
        "tools/thing.py": "import torch\nfrom rules_executorch.sizes import size\n\n"
        "WHAT: int = size() + torch.no_such_name\n",
    }.items():
        path = tmp_path / module
        path.parent.mkdir(parents=True)
        path.write_text(source, encoding="utf-8")
    return tmp_path


def test_right_types_and_whatever_packages_give(tree: Path) -> None:
    assert lint.run(tree, lint.types(), fix=False)


def test_wrong_types(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wrong = {
        "WHAT: str = size()": "assignment",
        "def more(x): ...": "no-untyped-def",
        "def some(x: dict) -> None: ...": "type-arg",
        "import no_such_package": "import-not-found",
        "def wide(x: str | None) -> str: return x + x": "operator",
    }
    lines = ["from rules_executorch.sizes import size", *wrong]
    (tree / "tools/thing.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert not lint.run(tree, lint.types(), fix=False)
    report = capfd.readouterr().out
    for number, code in enumerate(wrong.values(), start=2):
        assert re.search(rf"^tools/thing.py:{number}: error: .*\[{code}\]$", report, re.MULTILINE)
