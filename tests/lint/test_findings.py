"""The linters of prose and workflows find what they are there for, and pass what is right."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import lint
import pytest

ROOT = lint.checkout()

# In two parts, since this file is checked too.
WRONG = "# A page\n\nIt will reci" + "eve this.\n"

GOOD = """\
name: CI
on: [push]
permissions: {}
concurrency:
  group: ci
  cancel-in-progress: true
jobs:
  lint:
    name: Lint
    runs-on: ubuntu-24.04
    timeout-minutes: 20
    steps:
      - run: echo "$GITHUB_REF_NAME"
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with one workflow, one page, and this repository's configuration."""
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    for name in ("typos.toml", ".pymarkdown.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / ".github", tmp_path / ".github")
    (tmp_path / ".github/workflows/ci.yaml").write_text(GOOD)
    (tmp_path / "page.md").write_text("# A page\n\nText.\n")
    return tmp_path


def _found(tree: Path, linters: Callable[[Path], list[lint.Linter]]) -> list[str]:
    return [one.name for one in linters(tree) if not lint.run(tree, one, fix=False)]


def test_nothing_where_nothing_is_wrong(tree: Path) -> None:
    assert _found(tree, lint.prose) == []
    assert _found(tree, lint.workflows) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("# A page\n\n" + "word " * 25 + "\n", "pymarkdown"),
        ("# A page\n\n- one\n\n\n\n\n- two\n", "pymarkdown"),
        (WRONG, "typos"),
    ],
    ids=["a long line", "empty lines", "a wrong word"],
)
def test_prose(tree: Path, text: str, name: str) -> None:
    (tree / "page.md").write_text(text)
    assert _found(tree, lint.prose) == [name]


def test_tables_and_code_are_as_wide_as_they_are(tree: Path) -> None:
    wide = "word" + 40 * " word"
    text = f"# A page\n\n| a |\n| --- |\n| {wide} |\n\n```text\n{wide}\n```\n"
    (tree / "page.md").write_text(text)
    assert _found(tree, lint.prose) == []


def test_a_wrong_word_is_mended(tree: Path) -> None:
    (tree / "page.md").write_text(WRONG)
    typos = lint.prose(tree)[0]
    assert lint.run(tree, typos, fix=True)
    assert (tree / "page.md").read_text() == "# A page\n\nIt will receive this.\n"


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("runs-on", "run-on", "check-jsonschema github-workflows"),
        ("permissions: {}", "permissions: write-all", "zizmor"),
        ('"$GITHUB_REF_NAME"', "${{ github.head_ref }}", "zizmor"),
        ("run: echo", "uses: actions/checkout@v5 #", "zizmor"),
    ],
    ids=["a wrong key", "all permissions", "a branch name as code", "an action that can move"],
)
def test_workflows(tree: Path, old: str, new: str, name: str) -> None:
    assert old in GOOD
    (tree / ".github/workflows/ci.yaml").write_text(GOOD.replace(old, new))
    assert _found(tree, lint.workflows) == [name]


def test_forms(tree: Path) -> None:
    form = tree / ".github/ISSUE_TEMPLATE/bug.yaml"
    form.write_text(form.read_text().replace("type: textarea", "type: essay"))
    assert _found(tree, lint.workflows) == ["check-jsonschema github-issue-forms"]
