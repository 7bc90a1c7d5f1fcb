"""The picture of the packages: what it shows, and that it is noticed when it is out of date."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import draw
import networkx
import pytest

EMPTY = f"# The house\n\n{draw._BEGIN}{draw._END}\nMore.\n"


def _graph(*edges: str) -> networkx.DiGraph:
    return networkx.DiGraph(tuple(edge.split(">")) for edge in edges)


@pytest.fixture(scope="module")
def real() -> tuple[networkx.DiGraph, dict[str, str]]:
    rooms = draw.rooms()
    return draw.imports([room.name for room in rooms]), {r.name: r.purpose for r in rooms}


def test_the_arrows_mean_the_imports(real: tuple[networkx.DiGraph, dict[str, str]]) -> None:
    picture = draw.svg(*real)
    shown = networkx.DiGraph(re.findall(r"<title>(\w+) imports (\w+)</title>", picture))
    assert networkx.transitive_closure(shown).edges == networkx.transitive_closure(real[0]).edges
    assert ("commands", "lower") in real[0].edges, "an import inside a function"
    assert all(f">{name}</text>" in picture for name in real[0])


def test_a_floor_is_above_all_that_it_imports() -> None:
    graph = _graph("top>left", "top>low", "left>low", "aside>low")
    assert draw.floors(graph) == {"low": 0, "aside": 1, "left": 1, "top": 2}


def test_what_follows_is_not_drawn_and_a_long_arrow_passes_beside_the_boxes() -> None:
    plan = draw.plan(_graph("a>b", "b>c", "a>c", "c>d", "e>d", "a>e"))
    ends = {(arrow[0][0], arrow[-1][0]) for arrow in plan.arrows}
    assert ends == {("a", "b"), ("b", "c"), ("c", "d"), ("e", "d"), ("a", "e")}
    passed = ("a>e", 2)
    assert [("a", 3), passed, ("e", 1)] in plan.arrows
    assert abs(plan.x[passed] - plan.x["b", 2]) >= (draw._WIDTH + draw._LANE) / 2


def test_names_are_text_and_the_file_is_xml() -> None:
    picture = draw.svg(_graph("a>b"), {"a": "Reads <x> & writes `y`: all of it.", "b": "Plain."})
    texts = [e.text for e in xml.etree.ElementTree.fromstring(picture).iter() if e.text]
    assert "Reads <x> & writes y" in texts


def test_a_circle_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Imports:
        modules = ("p.a.x", "p.b.y")

        def find_modules_directly_imported_by(self, module: str) -> set[str]:
            return {"p.b.y"} if module == "p.a.x" else {"p.a.x"}

    monkeypatch.setattr(draw.grimp, "build_graph", lambda *_, **__: Imports())
    with pytest.raises(SystemExit, match="in a circle"):
        draw.imports(["a", "b"])


def test_the_same_bytes_whatever_the_hash_seed() -> None:
    program = "import sys, draw; sys.stdout.write(''.join(draw.pages(sys.argv[1]).values()))"
    written = {
        subprocess.run(
            [sys.executable, "-c", program, EMPTY],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(written) == 1


def test_what_is_out_of_date_is_said_and_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    page, picture = docs / "architecture.md", docs / "architecture.svg"
    page.write_text(EMPTY)
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(tmp_path))
    check = ["check", str(page), str(picture)]
    assert draw.main(["write"]) == 0
    assert draw.main(check) == 0
    assert page.read_text().endswith("\nMore.\n")
    picture.write_text(picture.read_text().replace("lower", "higher"))
    assert draw.main(check) == 1
    said = capsys.readouterr().err
    assert said == (
        "docs/architecture.svg: not what the code says."
        " Run `./bazelw run //tools/architecture:draw`.\n"
    )
    page.write_text(EMPTY)
    assert draw.main(check) == 1
    assert "docs/architecture.svg and docs/architecture.md" in capsys.readouterr().err
    assert draw.main(["write"]) == 0
    assert draw.main(check) == 0


def test_a_page_without_the_marks_is_left_alone() -> None:
    with pytest.raises(SystemExit, match="needs the lines"):
        draw.filled("# The house\n", "rows")
