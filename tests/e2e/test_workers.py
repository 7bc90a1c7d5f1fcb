"""Workers: what they say through Bazel's log and to a file, and the same bytes without them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from nested import Workspace

TARGETS = ("//:export", "//:program")
STEPS = re.compile(r"//:program  lower: delegates, (\d+) of (\d+), ")
ACTIONS = {"HfModelTiny": 1, "HfModelDescribe": 1, "ExecutorchExport": 1, "ExecutorchLower": 1}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    folder = tmp_path_factory.mktemp("workers")
    workspace = Workspace(folder / "app", folder / "output_base")
    yield workspace
    workspace.shutdown()


def test_workers_and_processes(workspace: Workspace, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    flag = f"--worker_extra_flag=ExecutorchLower=--progress={lines}"
    groups = "--output_groups=+timings"
    run = workspace.bazel("build", flag, groups, *TARGETS)
    assert {name: run.executed.get(name) for name in ACTIONS} == ACTIONS
    assert "From Lowering" not in run.text, "a successful action has nothing to say"
    logs = {
        mnemonic: "".join(
            log.read_text() for log in workspace.output_base.glob(f"bazel-workers/*-{mnemonic}.log")
        )
        for mnemonic in ("ExecutorchExport", "ExecutorchLower")
    }
    assert "//:export  export: trace the model, " in logs["ExecutorchExport"]
    steps = [(int(done), int(total)) for done, total in STEPS.findall(logs["ExecutorchLower"])]
    assert steps[0][0] == 0 and steps[-1][0] == steps[-1][1] > 0
    assert "//:program  lower: done, " in lines.read_text()
    assert STEPS.findall(lines.read_text()) == STEPS.findall(logs["ExecutorchLower"])
    timings = json.loads(workspace.output("program.timings.json").read_text())
    assert timings["seconds"] > 0 and timings["peak_rss_bytes"] > 100_000_000

    run = workspace.bazel("build", groups, *TARGETS)
    assert not set(run.executed) & set(ACTIONS), "the flag is no part of an action"

    warm = workspace.digests(TARGETS)
    workspace.bazel("clean")
    logs_before = sorted(workspace.output_base.glob("bazel-workers/*.log"))
    run = workspace.bazel("build", "--spawn_strategy=local", *TARGETS)
    assert run.executed["ExecutorchLower"] == 1
    assert sorted(workspace.output_base.glob("bazel-workers/*.log")) == logs_before
    assert "From Lowering" not in run.text
    assert workspace.digests(TARGETS) == warm
