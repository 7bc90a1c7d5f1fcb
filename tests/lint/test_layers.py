"""The layers hold: what `.importlinter` allows, and that it refuses what it is there for."""

from __future__ import annotations

import shutil
from pathlib import Path

import lint
import pytest

ROOT = lint.checkout()
PACKAGE = Path("python/rules_executorch")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the packages and of their contracts."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / PACKAGE, tmp_path / PACKAGE, ignore=ignored)
    shutil.copy(ROOT / ".importlinter", tmp_path)
    return tmp_path


def _append(tree: Path, module: str, source: str) -> None:
    with (tree / PACKAGE / module).open("a", encoding="utf-8") as file:
        file.write(source)


def _report(tree: Path, capfd: pytest.CaptureFixture[str]) -> str:
    assert not lint.run(tree, lint.layers(tree), fix=False)
    return " ".join(capfd.readouterr().out.split())


def test_the_checkout_keeps_them(tree: Path) -> None:
    assert lint.run(tree, lint.layers(tree), fix=False)


@pytest.mark.parametrize(
    "source",
    [
        "\nfrom rules_executorch.lower import pipeline\n",
        "\n\ndef late():\n    from rules_executorch.lower import pipeline\n",
        "\n\nif TYPE_CHECKING:\n    import rules_executorch.lower.pipeline\n",
    ],
    ids=["at the top", "in a function", "for a type checker"],
)
def test_an_arrow_upwards(tree: Path, capfd: pytest.CaptureFixture[str], source: str) -> None:
    _append(tree, "export/build.py", source)
    report = _report(tree, capfd)
    assert "No package imports one above it BROKEN" in report
    assert "rules_executorch.export.build -> rules_executorch.lower.pipeline" in report


def test_a_circle_inside_a_package(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _append(tree, "common/errors.py", "\nimport rules_executorch.common.text\n")
    _append(tree, "common/text.py", "\nimport rules_executorch.common.errors\n")
    report = _report(tree, capfd)
    assert "No cycles are allowed in rules_executorch.common." in report


def test_a_package_without_a_floor(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tree / PACKAGE / "attic").mkdir()
    (tree / PACKAGE / "attic/__init__.py").write_text("", encoding="utf-8")
    report = _report(tree, capfd)
    assert "attic" in report


@pytest.mark.parametrize("module", ["common.text", "backends.capabilities"])
def test_torch_where_no_model_is_read(
    tree: Path, capfd: pytest.CaptureFixture[str], module: str
) -> None:
    _append(tree, f"{module.replace('.', '/')}.py", "\n\ndef late():\n    import torch\n")
    report = _report(tree, capfd)
    assert f"rules_executorch.{module} -> torch" in report
