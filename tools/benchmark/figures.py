"""What was measured: rows for people, medians by key for programs."""

from __future__ import annotations

import dataclasses
import statistics
import textwrap
from collections.abc import Sequence
from pathlib import Path

BEGIN = "<!-- figures: written by tools/benchmark -->"
END = "<!-- end of figures -->"
_HEAD = ("what", "median", "spread", "runs")


@dataclasses.dataclass(frozen=True)
class Row:
    """One figure.

    Attributes:
        title: what was measured.
        values: of each run, in the order of the runs.
        unit: of the values; `x` for a ratio.
    """

    title: str
    values: Sequence[float]
    unit: str

    def cells(self) -> tuple[str, str, str, str]:
        """Title, median, smallest to largest, and number of runs."""
        median = f"{_text(statistics.median(self.values))} {self.unit}".strip()
        several = len(self.values) > 1
        spread = f"{_text(min(self.values))} to {_text(max(self.values))}" if several else ""
        return (self.title, median, spread, str(len(self.values)))


@dataclasses.dataclass
class Section:
    """Figures that were measured together.

    Attributes:
        name: of the section.
        title: for the table.
        rows: its figures.
        notes: sentences on how they were measured.
        failure: why it ended early, or None.
    """

    name: str
    title: str
    rows: list[Row] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    failure: str | None = None


@dataclasses.dataclass
class Figures:
    """All sections, and the medians that have a key."""

    sections: list[Section] = dataclasses.field(default_factory=list)
    medians: dict[str, float] = dataclasses.field(default_factory=dict)

    def begin(self, name: str, title: str) -> None:
        """Starts a section, which `add` and `note` go to."""
        self.sections.append(Section(name, title))

    def add(self, title: str, values: Sequence[float], unit: str, key: str | None = None) -> None:
        """Adds a figure; `key` also puts its median among those that are written as JSON.

        Args:
            title: what was measured.
            values: of each run, at least one.
            unit: of the values; `x` for a ratio.
            key: name of the median.
        """
        self.sections[-1].rows.append(Row(title, tuple(values), unit))
        if key is not None:
            self.medians[key] = statistics.median(values)

    def note(self, text: str) -> None:
        """Adds a sentence on how the section's figures were measured."""
        self.sections[-1].notes.append(text)

    def fail(self, why: str) -> None:
        """Says why the section has no more figures."""
        self.sections[-1].failure = why

    @property
    def failures(self) -> list[str]:
        """Names of the sections that ended early."""
        return [section.name for section in self.sections if section.failure is not None]

    def render(self) -> str:
        """The table for a terminal."""
        rows = [row.cells() for section in self.sections for row in section.rows]
        widths = [max(len(row[i]) for row in (_HEAD, *rows)) for i in range(4)]
        lines = []
        for section in self.sections:
            lines += ["", section.title]
            for row in (_HEAD, *(row.cells() for row in section.rows)):
                cells = zip(row, widths, strict=True)
                lines.append("  " + "  ".join(cell.ljust(width) for cell, width in cells).rstrip())
            lines += [f"  {note}" for note in section.notes]
            if section.failure is not None:
                lines.append(f"  FAILED: {section.failure}")
        return "\n".join(lines[1:])

    def markdown(self, machine: Sequence[str]) -> str:
        """The same as Markdown.

        Args:
            machine: sentences on the machine, the versions and the day.
        """
        lines = [_wrapped(f"- {text}") for text in machine]
        for section in self.sections:
            lines += ["", f"### {section.title}", "", f"| {' | '.join(_HEAD)} |"]
            lines.append("|---|---|---|---|")
            lines += [f"| {' | '.join(row.cells())} |" for row in section.rows]
            if section.notes:
                lines += ["", *(_wrapped(f"- {note}") for note in section.notes)]
            if section.failure is not None:
                lines += ["", _wrapped(f"This section ended early: {section.failure}")]
        return "\n".join(lines)


def write_markdown(path: Path, text: str) -> None:
    """Writes figures into a document.

    Args:
        path: a document with the lines BEGIN and END, between which the text goes, or a file that
            is not there yet.
        text: Markdown.

    Raises:
        ValueError: the document has no such lines.
    """
    block = f"{BEGIN}\n\n{text}\n\n{END}"
    if not path.exists():
        path.write_text(block + "\n", encoding="utf-8")
        return
    document = path.read_text(encoding="utf-8")
    head, begin, rest = document.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{path} has no lines {BEGIN} and {END} to write between.")
    path.write_text(head + block + tail, encoding="utf-8")


def _wrapped(text: str) -> str:
    """A paragraph or an item of a list, wrapped as the lint test wants Markdown."""
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(
        text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _text(value: float) -> str:
    """Three significant digits, without an exponent."""
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"
