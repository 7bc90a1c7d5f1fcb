"""What a long action is doing: its stages as they begin, and how long each took.

A line goes out when a stage begins and, at most once a second, when steps of it are done:

    12:04:31  //models:assistant  lower: delegates, 120 of 333, 8.4 s, 1.21 GB

What runs the action decides where the lines go (`SINKS`): a worker writes them to its log, a
process started by a person to the terminal. Without either, none are written.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import os
import resource
import time
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from rules_executorch.common import schema
from rules_executorch.common.schema import Artifact

SCHEMA_VERSION: Literal[1] = 1
_INTERVAL = 1.0

SINKS: contextvars.ContextVar[tuple[int, ...] | None] = contextvars.ContextVar("sinks")
"""File descriptors that lines are written to; unset, standard error if it is a terminal."""


@dataclasses.dataclass
class Stage:
    """A part of an action's work, while it goes on; see `StageTimings`."""

    name: str
    seconds: float = 0.0
    peak_rss_bytes: int = 0
    steps: int | None = None


Seconds = Annotated[float, Field(ge=0)]


@dataclasses.dataclass(frozen=True)
class StageTimings(Artifact):
    """What a part of an action's work took."""

    name: str
    """For people, and unique in an action."""
    seconds: Seconds
    """Of wall time."""
    peak_rss_bytes: int
    """The largest resident size of the process up to the stage's end."""
    steps: int | None
    """Delegates compiled, samples run; null where they are not counted."""


@dataclasses.dataclass(frozen=True)
class Timings(Artifact):
    """What an action took.

    Not the same from run to run, and so a file of its own: nothing is made from it.
    """

    schema_version: Literal[1]
    command: str
    stages: tuple[StageTimings, ...]
    seconds: Seconds
    """From the start of the work; imports of a cold process are before it."""
    cpu_seconds: Seconds
    """Of the process and the children that it waited for."""
    peak_rss_bytes: int


def peak_rss() -> int:
    """The largest resident size of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Progress:
    """The stages of one action.

    A stage that begins ends the one before it. One that begins again goes on: its seconds and
    steps add up.
    """

    def __init__(self, command: str = "", target: str | None = None) -> None:
        """Starts the clock.

        Args:
            command: name of the subcommand; without one, nothing is written.
            target: label of the target, for the lines.
        """
        self.command = command
        self.target = target
        self._stages: dict[str, Stage] = {}
        self._current: Stage | None = None
        self._began = self._since = time.perf_counter()
        self._total = 0
        self._done = 0
        self._said = 0.0

    def stage(self, name: str, total: int | None = None) -> None:
        """Begins a stage.

        Args:
            name: of the stage.
            total: number of its steps, if they are counted.
        """
        self._end()
        self._current = self._stages.setdefault(name, Stage(name))
        self._total, self._done = total or 0, 0
        if total is not None:
            self._current.steps = self._current.steps or 0
        self._say()

    def step(self, count: int = 1) -> None:
        """Counts steps of the current stage as done."""
        if self._current is None or self._current.steps is None:
            return
        self._done += count
        self._current.steps += count
        if self._done >= self._total or time.perf_counter() - self._said >= _INTERVAL:
            self._say()

    def finish_steps(self) -> None:
        """Counts what is left of the current stage's steps."""
        if self._done < self._total:
            self.step(self._total - self._done)

    def timings(self) -> Timings:
        """Ends the current stage."""
        self._end()
        times = os.times()
        return Timings(
            schema_version=SCHEMA_VERSION,
            command=self.command,
            stages=tuple(
                StageTimings(stage.name, round(stage.seconds, 3), stage.peak_rss_bytes, stage.steps)
                for stage in self._stages.values()
            ),
            seconds=round(time.perf_counter() - self._began, 3),
            cpu_seconds=round(sum(times[:4]), 3),
            peak_rss_bytes=peak_rss(),
        )

    def finish(self, path: str | None = None) -> None:
        """Ends the action; what it took is written to `path`."""
        timings = self.timings()
        self._write(f"done, {timings.seconds:.1f} s, {_gigabytes(timings.peak_rss_bytes)}")
        if path is not None:
            schema.write(path, timings)

    def _end(self) -> None:
        now = time.perf_counter()
        if self._current is not None:
            self._current.seconds += now - self._since
            self._current.peak_rss_bytes = peak_rss()
            self._current = None
        self._since = now

    def _say(self) -> None:
        self._said = time.perf_counter()
        stage = self._current
        if stage is None:
            return
        parts = [stage.name]
        if stage.steps is not None:
            parts.append(f"{self._done} of {self._total}")
        parts += [f"{self._said - self._began:.1f} s", _gigabytes(peak_rss())]
        self._write(", ".join(parts))

    def _write(self, text: str) -> None:
        if not self.command:
            return
        clock = time.strftime("%H:%M:%S")
        line = f"{clock}  {self.target or '-'}  {self.command}: {text}\n".encode()
        for sink in sinks():
            # The terminal may have been closed; the action goes on.
            with contextlib.suppress(OSError):
                os.write(sink, line)


def sinks() -> Sequence[int]:
    """The file descriptors that lines go to."""
    chosen = SINKS.get(None)
    if chosen is None:
        return (2,) if os.isatty(2) else ()
    return chosen


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.2f} GB"
