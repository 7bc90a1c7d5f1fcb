"""Every family of docs/models.md becomes a program that computes what eager computes."""

from __future__ import annotations

from pathlib import Path

import pytest
from model_families import FAMILIES, Family
from model_table import HEADER, TOLERANCE, build

DOCS = Path(__file__).parents[3] / "docs" / "models.md"


def lines() -> list[str]:
    """The lines of the committed table."""
    text = DOCS.read_text(encoding="utf-8")
    assert text.startswith(HEADER)
    return text.removeprefix(HEADER).splitlines()


def test_the_table_has_the_families() -> None:
    assert [line.split(" | ")[0] for line in lines()] == [f"| {f.name}" for f in FAMILIES]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_family(tmp_path: Path, family: Family) -> None:
    row = build(family, tmp_path)
    committed = next(line for line in lines() if line.startswith(f"| {family.name} |"))
    said, _, bound = committed.removesuffix(" |").rpartition(" | below ")
    assert said == f"| {' | '.join(row.cells)}"
    assert row.difference < float(bound) <= TOLERANCE
