"""How fast programs run: load, prefill and decode through ExecuTorch's C++ LLM runner.

Every run is a process of its own, and the programs take turns, so that load on the machine affects
all of them. Figures are medians; ratios are taken run by run.
"""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from rules_executorch.common import guard
from rules_executorch.common.errors import UserError

FIGURES = {
    "load_s": "load, s",
    "prefill_tokens_per_s": "prefill, tokens/s",
    "decode_tokens_per_s": "decode, tokens/s",
    "peak_rss_mb": "peak memory, MB",
}


@dataclasses.dataclass(frozen=True)
class Contender:
    """A program to compare.

    Attributes:
        name: for the table.
        program: path of the `.pte`.
        data: path of its `.ptd`, or None.
    """

    name: str
    program: str
    data: str | None = None


@dataclasses.dataclass(frozen=True)
class Spread:
    """Median, smallest and largest of some runs."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Sums up at least one value."""
        return cls(statistics.median(values), min(values), max(values))

    def text(self) -> str:
        """For example `12.3 (11.9 to 12.8)`."""
        return f"{_number(self.median)} ({_number(self.low)} to {_number(self.high)})"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def in_process(work: Callable[[], dict[str, float]]) -> dict[str, float]:
    """Runs `work` in a forked child and gives its result, with the child's peak memory.

    Raises:
        UserError: the child failed; what it printed is above.
    """
    reader, writer = os.pipe()

    def child() -> int:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        try:
            result = work()
        except UserError as error:
            os.write(2, f"{error}\n".encode())
            return 1
        result["peak_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        os.write(writer, json.dumps(result).encode())
        return 0

    with os.fdopen(reader, "rb") as file:
        with guard.Child(child) as process:
            os.close(writer)
            status = process.wait()
        answer = file.read()
    if status or not answer:
        raise UserError(
            f"A run ended with status {status}.",
            instead="What it says is above; the executorch_generate rule runs the same program.",
        )
    return json.loads(answer)


def race(
    contenders: Sequence[Contender],
    measure: Callable[[Contender], dict[str, float]],
    runs: int,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, list[dict[str, float]]]:
    """Lets the programs take turns.

    Args:
        contenders: at least one; the order is reversed after every turn.
        measure: runs one program once.
        runs: measured turns, after one that warms up.
        progress: takes a line for people.

    Returns:
        The runs of each program, by its name.
    """
    found: dict[str, list[dict[str, float]]] = {contender.name: [] for contender in contenders}
    order = list(contenders)
    for turn in range(runs + 1):
        for contender in order:
            progress(f"run {turn} of {runs}: {contender.name}" if turn else contender.name)
            result = measure(contender)
            if turn:
                found[contender.name].append(result)
        order.reverse()
    return found


def summarize(found: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Medians of each figure, and its ratio to the first program's, run by run.

    Returns:
        Program to figure to `median`, `low`, `high`, and for the programs after the first
        `first_over_this`: how many times as much the first one has.
    """
    names = list(found)
    summary: dict[str, Any] = {}
    for name in names:
        summary[name] = {}
        for figure in FIGURES:
            values = [run[figure] for run in found[name]]
            entry = dataclasses.asdict(Spread.of(values))
            if name != names[0]:
                ours = [run[figure] for run in found[names[0]]]
                ratios = [a / b for a, b in zip(ours, values, strict=True) if b]
                entry["first_over_this"] = dataclasses.asdict(Spread.of(ratios or [0.0]))
            summary[name][figure] = entry
    return summary


def render(summary: dict[str, Any]) -> str:
    """The table: a row for each figure, a column for each program and for each ratio."""
    names = list(summary)
    head = ["", *names, *(f"{names[0]} / {name}" for name in names[1:])]
    rows = [head]
    for figure, title in FIGURES.items():
        cells = [_spread(summary[name][figure]) for name in names]
        ratios = [_spread(summary[name][figure]["first_over_this"]) for name in names[1:]]
        rows.append([title, *cells, *ratios])
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _spread(entry: dict[str, float]) -> str:
    return Spread(entry["median"], entry["low"], entry["high"]).text()
