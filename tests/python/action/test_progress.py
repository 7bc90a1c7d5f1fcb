"""Progress: lines as stages begin, seconds and steps that add up."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rules_executorch.action import progress
from rules_executorch.action.progress import Progress


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def strftime(self, _: str) -> str:
        return "12:00:00"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "lines"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    token = progress.SINKS.set((descriptor,))
    yield path
    progress.SINKS.reset(token)
    os.close(descriptor)


def test_a_stage_that_begins_again_goes_on(clock: Clock, tmp_path: Path) -> None:
    one = Progress("lower")
    for name, seconds in (("a", 1), ("b", 2), ("a", 4)):
        one.stage(name)
        clock.now += seconds
    one.finish(str(tmp_path / "timings.json"))
    timings = json.loads((tmp_path / "timings.json").read_text())
    assert [(s["name"], s["seconds"]) for s in timings["stages"]] == [("a", 5), ("b", 2)]
    assert timings["seconds"] == 7


def test_steps_are_told_once_a_second_and_at_the_end(clock: Clock, lines: Path) -> None:
    one = Progress("lower", "//a:b")
    one.stage("delegates", 10)
    for _ in range(10):
        clock.now += 0.3
        one.step()
    one.finish()
    told = [
        line.rpartition(" s, ")[0].removeprefix("12:00:00  //a:b  lower: ")
        for line in lines.read_text().splitlines()
    ]
    assert told == [
        "delegates, 0 of 10, 0.0",
        "delegates, 4 of 10, 1.2",
        "delegates, 8 of 10, 2.4",
        "delegates, 10 of 10, 3.0",
        "done, 3.0",
    ]


def test_nothing_is_said_without_a_command(lines: Path) -> None:
    Progress().stage("a", 3)
    assert lines.read_text() == ""


def test_what_is_left_counts_as_done(clock: Clock, lines: Path) -> None:
    one = Progress("lower")
    one.stage("delegates", 3)
    one.step()
    one.finish_steps()
    assert re.search("3 of 3", lines.read_text())
    one.stage("no steps")
    one.step()
    stages = one.timings().stages
    assert [stage.steps for stage in stages] == [3, None]


def test_a_terminal_gets_the_lines_and_a_pipe_does_not() -> None:
    program = (
        "from rules_executorch.action.progress import Progress; Progress('lower').stage('start')"
    )
    command = [sys.executable, "-c", program]
    piped = subprocess.run(command, capture_output=True, check=True)
    assert piped.stderr == b""
    leader, terminal = os.openpty()
    subprocess.run(command, stderr=terminal, check=True)
    os.close(terminal)
    assert b"lower: start" in os.read(leader, 4096)
    os.close(leader)
