"""Builds of an app's workspace with a remote cache or executor, and where their actions ran."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from nested import CHECKOUT, Workspace

TARGETS = ("//:export", "//:program")

# What these targets need: a checkpoint, its description, an export and a lowering.
ACTIONS = 4

_OUTPUTS = "--output_groups=+manifest,+report"

# Counted by Bazel beside the places where actions run: all actions, and those that it runs itself.
_NOWHERE = {"internal", "total"}


@dataclasses.dataclass(frozen=True)
class Build:
    """A finished build.

    Attributes:
        status: its exit status.
        text: what it printed.
        ran: how many actions ran where, by Bazel's name for the place, such as `remote`,
            `remote cache hit` or `worker`. Those that were up to date are not counted.
    """

    status: int
    text: str
    ran: Mapping[str, int]


def build(
    workspace: Workspace,
    *options: str,
    targets: Sequence[str] = TARGETS,
    meanwhile: Callable[[], bool] | None = None,
    seconds: int = 2400,
) -> Build:
    """Builds targets, whatever the exit status.

    Args:
        workspace: of the app.
        *options: of the command line.
        targets: what to build, with manifests and reports.
        meanwhile: called again and again until it returns True, which it has to do before Bazel
            ends.
        seconds: after which Bazel is killed and the test fails, since a queue without a worker
            waits for ever.
    """
    workspace.events.unlink(missing_ok=True)
    log = workspace.output_base.with_name("bazel.log")
    with log.open("wb") as file:
        process = subprocess.Popen(
            workspace.command("build", _OUTPUTS, *options, *targets),
            cwd=workspace.folder,
            env=workspace.env,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    deadline = time.monotonic() + seconds
    done = meanwhile is None
    while process.poll() is None and time.monotonic() < deadline:
        if not done and meanwhile is not None:
            done = meanwhile()
        time.sleep(0.05)
    if process.poll() is None:
        _kill(workspace)
        process.kill()
        process.wait()
        raise AssertionError(f"Bazel was killed after {seconds} seconds:\n{log.read_text()}")
    text = log.read_text()
    assert done, f"What should happen meanwhile did not happen:\n{text}"
    return Build(process.returncode, text, _ran(workspace.events))


def _kill(workspace: Workspace) -> None:
    """Kills a Bazel server, which waits for what its client asked for even without a client."""
    server = workspace.output_base / "server" / "server.pid.txt"
    os.kill(int(server.read_text()), signal.SIGKILL)


def _ran(events: Path) -> dict[str, int]:
    ran: dict[str, int] = {}
    if events.exists():
        for line in events.read_text().splitlines():
            metrics = json.loads(line).get("buildMetrics", {})
            for row in metrics.get("actionSummary", {}).get("runnerCount", []):
                if row["name"] not in _NOWHERE:
                    ran[row["name"]] = int(row["count"])
    return ran


def good(built: Build) -> Build:
    """A build that ended well; fails with what it printed otherwise."""
    assert built.status == 0, built.text
    return built


def presets(file: str) -> list[str]:
    """The lines of the presets in a file of this checkout."""
    lines = (CHECKOUT / file).read_text().splitlines()
    return [line for line in lines if re.match(r"build:remote(_cache)? ", line)]


def use_presets(workspace: Workspace) -> None:
    """Gives an app the presets, as docs/remote.md says."""
    workspace.settings("\n".join([*presets(".bazelrc"), ""]))


def digests(
    workspace: Workspace, *options: str, targets: Sequence[str] = TARGETS
) -> dict[str, str]:
    """sha256 by file name of what a build of targets gave, nothing of which is left to execute."""
    built = good(build(workspace, *options, targets=targets))
    # Bazel may look up once more what it made in place of a blob that was not there.
    assert set(built.ran) <= {"remote cache hit"}, built.text
    return workspace.digests(targets, *options)


@contextmanager
def app(
    folder: Path,
    env: Mapping[str, str] | None = None,
    checkout: Path = CHECKOUT,
) -> Iterator[Workspace]:
    """The smoke app with the presets and a Bazel server of its own, below an empty folder."""
    workspace = Workspace(folder / "app", folder / "output_base", checkout, env)
    use_presets(workspace)
    try:
        yield workspace
    finally:
        workspace.shutdown()
