"""The tables of docs/backends.md say what the rules, the backends and the tests do."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest

from rules_executorch.backends import NAMES, find_backend

ROOT = Path(__file__).parents[2]
FACTS = json.loads((Path(__file__).parent / "facts.json").read_text())
CODE = re.compile(r"`([^`]+)`")


def rows(head: str) -> dict[str, dict[str, str]]:
    """The table that has a column, by backend: column to cell."""
    lines = (ROOT / "docs" / "backends.md").read_text().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    (start,) = (
        number
        for number, row in enumerate(cells)
        if lines[number].startswith("| backend ") and head in row
    )
    table: dict[str, dict[str, str]] = {}
    for row in itertools.takewhile(lambda row: len(row) > 1, cells[start + 2 :]):
        for backend in CODE.findall(row[0]):
            assert backend not in table
            table[backend] = dict(zip(cells[start], row, strict=True))
    return table


def devices(cell: str) -> list[str]:
    """Names of devices; `a_{b,c}` stands for `a_b` and `a_c`."""
    found = []
    for text in CODE.findall(cell):
        match = re.fullmatch(r"(\w*)\{([\w,]+)\}", text)
        found += [match[1] + end for end in match[2].split(",")] if match else [text]
    return found


CI = rows("lowered in CI")
TAKES = rows("sequence length")


def test_every_backend_and_every_device_has_its_place() -> None:
    assert set(CI) == set(TAKES) == set(NAMES)
    listed = {
        device: backend
        for backend, row in CI.items()
        for device in devices(row["devices of the catalogue"])
    }
    assert listed == FACTS["devices"]


@pytest.mark.parametrize("backend", NAMES)
def test_what_is_lowered_has_a_program_for_each_device(backend: str) -> None:
    names = set(devices(CI[backend]["devices of the catalogue"]))
    says = CI[backend]["lowered in CI"].split(",")[0]
    assert says in ("yes", "no")
    assert names & set(FACTS["lowered"]) == (names if says == "yes" else set())
    assert (says == "no") == (find_backend(backend).needs.sdk is not None)


@pytest.mark.parametrize("backend", NAMES)
def test_what_is_executed_names_a_test_that_does_it(backend: str) -> None:
    cell = CI[backend]["executed in CI"]
    tests = {test for test, executes in FACTS["executed"].items() if executes == backend}
    if cell.startswith("yes"):
        assert tests and set(CODE.findall(cell)) == tests
    else:
        assert re.match(r"no(: |$)", cell) and not tests


@pytest.mark.parametrize("backend", NAMES)
def test_needs_are_those_of_the_backend(backend: str) -> None:
    needs, cell = find_backend(backend).needs, CI[backend]["needs"]
    assert (f"group `{needs.group}`" in cell) == (needs.group is not None)
    assert (cell == "") == (not needs.modules and needs.sdk is None)
    if needs.variable is not None:
        assert {needs.variable, "sdk_root"} <= set(CODE.findall(cell))
    if needs.sdk is not None:
        wheels = [module for module in needs.modules if "." not in module]
        assert set(wheels) <= set(CODE.findall(cell))
        assert needs.sdk.split()[-2] in cell


@pytest.mark.parametrize("backend", NAMES)
def test_what_a_backend_takes(backend: str) -> None:
    row, takes = TAKES[backend], find_backend(backend)
    assert tuple(re.findall(r"b?float\d+", row["dtypes"])) == takes.dtypes
    assert row["sequence length"] == ("any" if takes.dynamic_shapes else "fixed")
    assert row["programs"] == ("any" if takes.generation else "without a cache")
    assert set(CODE.findall(row["options"])) == set(takes.options_schema["properties"])
