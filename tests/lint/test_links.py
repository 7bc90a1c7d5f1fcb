"""What the documentation points to is there."""

from __future__ import annotations

import re
from pathlib import Path

import lint
import pytest

ROOT = lint.checkout()
PAGES = lint.tracked(ROOT, "*.md")

_FENCE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"(?:docs|e2e|executorch|models|python|tests|tools|\.ci|\.github)/[\w./-]+")
_LABEL = re.compile(
    r"(?<![\w@])//((?:docs|executorch|tests|tools)(?:/[\w-]+)*)(?::[\w.-]+|\b(?!/))"
)
"""Packages of labels; those of //models and others may be examples."""


def missing(page: Path, root: Path) -> list[str]:
    """Links to files, their headings, and paths of the checkout in code, that lead nowhere."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    found = []
    for link in _LINK.findall(text):
        path, _, heading = link.partition("#")
        if "://" in path or path.startswith("mailto:"):
            continue
        target = page.parent / path if path else page
        if not target.exists() or heading and heading not in _headings(target):
            found.append(link)
    for code in _CODE.findall(text):
        if _PATH.fullmatch(code) and "NAME" not in code and not (root / code).exists():
            found.append(code)
        for package in _LABEL.findall(code):
            if not (root / package / "BUILD.bazel").exists():
                found.append(f"//{package}")
    return found


def _headings(page: Path) -> set[str]:
    """The names that GitHub gives the headings of a page."""
    lines = _FENCE.sub("", page.read_text(encoding="utf-8")).splitlines()
    titles = (line.lstrip("#").strip() for line in lines if line.startswith("#"))
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES)
def test_everything_is_there(page: str) -> None:
    assert missing(ROOT / page, ROOT) == []


def test_what_is_not_there_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# The Other, one\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md) [b](other.md#the-other-one) [c](https://example.com/x) [d](gone.md)\n"
        "[e](other.md#gone) [f](#here) [g](#gone)\n\n## Here\n\n"
        "`python/gone.py` `executorch/NAME.bzl` `some/other/path`\n\n"
        "`bazel run //tools/gone:it` `@else//tools/where:it` `//app:mine` `--//executorch/no=1`\n\n"
        "```text\n[h](gone.md)\n```\n"
    )
    assert missing(page, tmp_path) == [
        "gone.md",
        "other.md#gone",
        "#gone",
        "python/gone.py",
        "//tools/gone",
        "//executorch/no",
    ]


@pytest.mark.parametrize("name", [".gitattributes", ".github/CODEOWNERS"])
def test_paths_of_a_configuration_match_something(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    paths = [line.split()[0] for line in lines if line.startswith("/")]
    assert paths
    assert [path for path in paths if not list(ROOT.glob(path.strip("/")))] == []
