"""Draws docs/architecture.svg and fills the table of docs/architecture.md, both from the code.

    bazel run //tools/architecture:draw

grimp reads the imports and networkx leaves out the arrows that follow from others. A package
stands one floor above the highest of those it imports; the order on a floor is the one whose arrows
cross least and are shortest. What a package is for is the first line of its docstring: the picture
has it up to the colon, the table has all of it.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import os
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from xml.sax.saxutils import escape

import grimp
import networkx

PACKAGE = "rules_executorch"
_PAGE, _PICTURE = "architecture.md", "architecture.svg"

WAY = ("hub", "checkpoint", "export", "lower", "records", "run")
"""The packages that a model passes, in this order."""

_BEGIN, _END = "<!-- Written by `bazel run //tools/architecture:draw`. -->\n", "<!-- End. -->\n"

_WIDTH, _HEIGHT = 206, 66
_COLUMN, _FLOOR = 232, 116
_LANE = 44
_MARGIN = 24
_LINE = 26
"""Characters of a line in a box."""

_STYLE = """\
text { font: 12.5px system-ui, sans-serif; fill: #57606a; text-anchor: middle }
text.name { font: 600 15px ui-monospace, monospace; fill: #1f2328 }
text.number { font-weight: 700; fill: #ffffff }
text.key { text-anchor: start }
.paper { fill: #ffffff }
.box { fill: #f6f8fa; stroke: #8c959f }
.way .box { fill: #ddf4ff; stroke: #0969da }
.chip { fill: #0969da }
.arrow { fill: none; stroke: #8c959f; stroke-width: 1.3; marker-end: url(#head) }
.head { fill: #8c959f }
@media (prefers-color-scheme: dark) {
text { fill: #9198a1 }
text.name { fill: #e6edf3 }
text.number { fill: #0d1117 }
.paper { fill: #0d1117 }
.box { fill: #161b22; stroke: #6e7681 }
.way .box { fill: #0c2d4d; stroke: #58a6ff }
.chip { fill: #58a6ff }
.arrow { stroke: #6e7681 }
.head { fill: #6e7681 }
}
"""
"""Colours that can be read on light and on dark pages; the picture has a ground of its own."""


@dataclasses.dataclass(frozen=True)
class Room:
    """A package, or a module that stands beside the packages.

    Attributes:
        name: its name below `rules_executorch`.
        purpose: the first line of its docstring.
    """

    name: str
    purpose: str


def rooms() -> list[Room]:
    """What lies directly below the package, but for what only starts the command line."""
    found = []
    for entry in sorted(resources.files(PACKAGE).iterdir(), key=lambda entry: entry.name):
        source = entry / "__init__.py" if entry.is_dir() else entry
        name = entry.name.removesuffix(".py")
        if not (source.is_file() and source.name.endswith(".py")) or name.startswith("__"):
            continue
        doc = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8")))
        if not doc:
            raise SystemExit(f"{name} has no docstring that says what it is for.")
        found.append(Room(name, doc.splitlines()[0]))
    return found


def imports(names: Sequence[str]) -> networkx.DiGraph:
    """Which room imports which, wherever in a module the import stands."""
    modules = grimp.build_graph(PACKAGE, cache_dir=None, exclude_type_checking_imports=False)
    graph = networkx.DiGraph()
    graph.add_nodes_from(names)
    for importer in sorted(modules.modules):
        for imported in sorted(modules.find_modules_directly_imported_by(importer)):
            ends = [module.split(".")[1:2] for module in (importer, imported)]
            if all(end and end[0] in graph for end in ends) and ends[0] != ends[1]:
                graph.add_edge(ends[0][0], ends[1][0])
    if not networkx.is_directed_acyclic_graph(graph):
        raise SystemExit(
            "The packages import each other in a circle; //tools/lint:lint_test says where."
        )
    return graph


def floors(graph: networkx.DiGraph) -> dict[str, int]:
    """The floor of each room: 0 for one that imports none."""
    generations = networkx.topological_generations(graph.reverse())
    return {name: floor for floor, names in enumerate(generations) for name in names}


Point = tuple[str, int]
"""A room on its floor, or where an arrow `from>to` passes a floor."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """Where everything stands.

    Attributes:
        rows: what stands on each floor from left to right, the ground floor first.
        arrows: for each arrow the points that it passes, from the importer down.
        x: the middle of each point.
    """

    rows: list[list[Point]]
    arrows: list[list[Point]]
    x: Mapping[Point, float]


def plan(graph: networkx.DiGraph) -> Plan:
    """Lays out the arrows that do not follow from others."""
    level = floors(graph)
    reduced = networkx.transitive_reduction(graph)
    rows: list[list[Point]] = [[] for _ in range(max(level.values()) + 1)]
    for name in sorted(level):
        rows[level[name]].append((name, level[name]))
    arrows = []
    for upper, lower in sorted(reduced.edges):
        passed = [(f"{upper}>{lower}", at) for at in range(level[upper] - 1, level[lower], -1)]
        for point in passed:
            rows[point[1]].append(point)
        arrows.append([(upper, level[upper]), *passed, (lower, level[lower])])
    steps = [step for arrow in arrows for step in itertools.pairwise(arrow)]
    x = _positions(rows)
    cost = _cost(steps, x)
    while True:
        for index in range(len(rows)):
            rows[index] = min(
                map(list, itertools.permutations(sorted(rows[index]))),
                key=lambda row: _cost(steps, x | _row(row)),  # noqa: B023
            )
            x = _positions(rows)
        improved = _cost(steps, x)
        if improved >= cost:
            return Plan(rows, arrows, x)
        cost = improved


def _space(point: Point) -> float:
    return _LANE if ">" in point[0] else _COLUMN


def _row(row: Sequence[Point]) -> dict[Point, float]:
    left = -sum(map(_space, row)) / 2
    found = {}
    for point in row:
        found[point] = left + _space(point) / 2
        left += _space(point)
    return found


def _positions(rows: Sequence[Sequence[Point]]) -> dict[Point, float]:
    return {point: x for row in rows for point, x in _row(row).items()}


def _cost(steps: Sequence[tuple[Point, Point]], x: Mapping[Point, float]) -> tuple[int, float]:
    crossings = sum(
        (x[a[0]] - x[b[0]]) * (x[a[1]] - x[b[1]]) < 0
        for a, b in itertools.combinations(steps, 2)
        if a[0][1] == b[0][1]
    )
    return crossings, round(sum(abs(x[upper] - x[lower]) for upper, lower in steps), 3)


def _ports(drawing: Plan, end: int) -> dict[tuple[Point, Point], float]:
    """Where arrows leave (end 0) or reach (end 1) a room, spread so that none touches another."""
    steps = sorted({step for arrow in drawing.arrows for step in itertools.pairwise(arrow)})
    found = {}
    for point, x in drawing.x.items():
        here = sorted(
            (step for step in steps if step[end] == point), key=lambda s: drawing.x[s[1 - end]]
        )
        gap = min(34, (_WIDTH - 40) / max(1, len(here) - 1))
        for index, step in enumerate(here):
            found[step] = x + (index - (len(here) - 1) / 2) * gap
    return found


def _number(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")


def svg(graph: networkx.DiGraph, purposes: Mapping[str, str]) -> str:
    """The picture.

    Args:
        graph: the rooms and their imports.
        purposes: the first line of each room's docstring.

    Returns:
        An SVG file, the same bytes for the same arguments.
    """
    drawing = plan(graph)
    half = max(sum(map(_space, row)) for row in drawing.rows) / 2
    width = 2 * (half + _MARGIN)
    height = 2 * _MARGIN + (len(drawing.rows) - 1) * _FLOOR + _HEIGHT + 44

    def top(floor: int) -> float:
        return _MARGIN + (len(drawing.rows) - 1 - floor) * _FLOOR

    def across(x: float) -> float:
        return x + half + _MARGIN

    def boxes() -> Iterator[str]:
        for point in (point for row in drawing.rows for point in row if ">" not in point[0]):
            name, floor = point
            x, y = across(drawing.x[point]), top(floor)
            kind = ' class="way"' if name in WAY else ""
            yield f"<g{kind}>"
            yield (
                f'<rect class="box" x="{_number(x - _WIDTH / 2)}" y="{_number(y)}"'
                f' width="{_WIDTH}" height="{_HEIGHT}" rx="8"/>'
            )
            lines = textwrap.wrap(purposes[name].partition(":")[0].replace("`", ""), _LINE)[:2]
            middle = y + _HEIGHT / 2 - 7.5 * len(lines)
            yield f'<text class="name" x="{_number(x)}" y="{_number(middle + 3)}">{name}</text>'
            for index, line in enumerate(lines):
                at = _number(middle + 21 + 15 * index)
                yield f'<text x="{_number(x)}" y="{at}">{escape(line)}</text>'
            if name in WAY:
                corner = _number(x - _WIDTH / 2 + 17), _number(y + 17)
                yield f'<circle class="chip" cx="{corner[0]}" cy="{corner[1]}" r="10"/>'
                at = _number(y + 21.5)
                number = WAY.index(name) + 1
                yield f'<text class="number" x="{corner[0]}" y="{at}">{number}</text>'
            yield "</g>"

    leaving, reaching = _ports(drawing, 0), _ports(drawing, 1)

    def lines() -> Iterator[str]:
        for arrow in drawing.arrows:
            steps = list(itertools.pairwise(arrow))
            path = []
            for index, (upper, lower) in enumerate(steps):
                first, last = index == 0, index == len(steps) - 1
                x1, y1 = leaving[upper, lower], top(upper[1]) + _HEIGHT
                x2, y2 = reaching[upper, lower], top(lower[1]) - (7 if last else 0)
                bend = (y2 - y1) / 2
                if first:
                    path.append(f"M{_number(across(x1))} {_number(y1)}")
                path.append(
                    f"C{_number(across(x1))} {_number(y1 + bend)}"
                    f" {_number(across(x2))} {_number(y2 - bend)}"
                    f" {_number(across(x2))} {_number(y2)}"
                )
                if not last:
                    path.append(f"V{_number(top(lower[1]) + _HEIGHT)}")
            title = f"{arrow[0][0]} imports {arrow[-1][0]}"
            yield f'<path class="arrow" d="{"".join(path)}"><title>{title}</title></path>'

    key = (
        "Arrows are imports; those that follow from others are left out.",
        f"The numbers 1 to {len(WAY)} are the way of a model.",
    )
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" role="img"'
            f' viewBox="0 0 {_number(width)} {_number(height)}"'
            f' width="{_number(width)}" height="{_number(height)}">',
            "<title>The packages of rules_executorch and what they import</title>",
            f"<style>\n{_STYLE}</style>",
            '<defs><marker id="head" markerWidth="9" markerHeight="8" refX="1" refY="4"'
            ' orient="auto" markerUnits="userSpaceOnUse">'
            '<path class="head" d="M0 0L9 4L0 8z"/></marker></defs>',
            f'<rect class="paper" width="{_number(width)}" height="{_number(height)}" rx="12"/>',
            *lines(),
            *boxes(),
            *(
                f'<text class="key" x="{_MARGIN}" y="{_number(height - _MARGIN - 18 + 18 * row)}">'
                f"{text}</text>"
                for row, text in enumerate(key)
            ),
            "</svg>",
            "",
        ]
    )


def table(graph: networkx.DiGraph, purposes: Mapping[str, str]) -> str:
    """The rooms from the top floor down, as Markdown."""
    level = floors(graph)
    lines = ["| floor | package | |", "| --: | :-- | :-- |"]
    for name in sorted(level, key=lambda name: (-level[name], name)):
        link = f"[`{name}`](../python/rules_executorch/{name})"
        if name == "cli":
            link = f"[`{name}`](../python/rules_executorch/{name}.py)"
        lines.append(f"| {level[name]} | {link} | {purposes[name]} |")
    return "\n".join(lines) + "\n"


def filled(page: str, rows: str) -> str:
    """`page` with `rows` between its two marks."""
    head, begin, rest = page.partition(_BEGIN)
    _, end, tail = rest.partition(_END)
    if not (begin and end):
        raise SystemExit(f"docs/architecture.md needs the lines {_BEGIN!r} and {_END!r}.")
    return f"{head}{_BEGIN}\n{rows}\n{_END}{tail}"


def pages(page: str) -> dict[str, str]:
    """What the two files should hold, by name, given what the Markdown holds."""
    found = rooms()
    purposes = {room.name: room.purpose for room in found}
    graph = imports([room.name for room in found])
    return {
        _PICTURE: svg(graph, purposes),
        _PAGE: filled(page, table(graph, purposes)),
    }


def main(argv: Sequence[str]) -> int:
    """Writes both files into the checkout, or compares them with what the code says.

    Args:
        argv: `write`, or `check` and the paths of both files.

    Returns:
        1 if a file is out of date, which only `check` finds.
    """
    mode, *files = argv
    if mode == "write":
        docs = Path(os.environ["BUILD_WORKSPACE_DIRECTORY"], "docs")
        paths = {name: docs / name for name in (_PAGE, _PICTURE)}
    else:
        paths = {Path(file).name: Path(file) for file in files}
    stale = []
    for name, text in pages(paths[_PAGE].read_text(encoding="utf-8")).items():
        if mode == "write":
            paths[name].write_text(text, encoding="utf-8")
        elif paths[name].read_text(encoding="utf-8") != text:
            stale.append(f"docs/{name}")
    if stale:
        print(
            f"{' and '.join(stale)}: not what the code says."
            " Run `./bazelw run //tools/architecture:draw`.",
            file=sys.stderr,
        )
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
