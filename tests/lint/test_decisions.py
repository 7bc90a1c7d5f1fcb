"""Decisions and changes have the form that their pages promise."""

from __future__ import annotations

import re
from pathlib import Path

import lint

ROOT = lint.checkout()
DECISIONS = ROOT / "docs" / "decisions"


def test_decisions_are_numbered_listed_and_say_why_and_what_follows() -> None:
    files = sorted(path for path in DECISIONS.glob("*.md") if path.name != "README.md")
    titles = []
    for number, path in enumerate(files, start=1):
        text = path.read_text(encoding="utf-8")
        headings = re.findall(r"^#+ .*", text, re.MULTILINE)
        assert path.name.startswith(f"{number:04}-")
        assert headings[0].startswith(f"# {number}. ")
        assert headings[1:] == ["## Context", "## Decision", "## Consequences"], path.name
        titles.append((headings[0].removeprefix("# "), path.name))
    index = (DECISIONS / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^- \[(.*)\]\((.*)\)$", index, re.MULTILINE) == titles


def test_the_changelog_has_the_usual_form() -> None:
    text = Path(ROOT, "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"^## (.*)", text, re.MULTILINE)
    assert releases[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", one) for one in releases[1:])
    kinds = re.findall(r"^### (.*)", text, re.MULTILINE)
    assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    links = {name.lower() for name in re.findall(r"^\[([^\]]+)\]: ", text, re.MULTILINE)}
    assert links == {release[1:].partition("]")[0].lower() for release in releases}
