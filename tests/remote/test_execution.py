"""Remote execution: the same bytes from workers, and what happens when they are killed.

One executor serves the first tests of this file, which run in order.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import engines
import pytest
from builds import ACTIONS, app, build, digests, good
from engines import Executor
from nested import Workspace

CHECKPOINT = ["//:checkpoint"]

SMALL = """\
genrule(
    name = "small",
    outs = ["small.txt"],
    cmd = "(pwd; env; ls) > $@",
)
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with app(tmp_path_factory.mktemp("app")) as workspace:
        yield workspace


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Executor]:
    with Executor(tmp_path_factory.mktemp("executor")) as executor:
        yield executor


def use(executor: Executor) -> tuple[str, ...]:
    """The options that a person adds."""
    return ("--config=remote", f"--remote_executor={executor.url}")


def test_exporting_and_lowering_run_on_workers(workspace: Workspace, executor: Executor) -> None:
    assert good(build(workspace, *use(executor))).ran == {"remote": ACTIONS}
    remote = digests(workspace, *use(executor))
    assert {"export.pt2", "program.manifest.json", "program.pte"} <= set(remote)

    local = good(build(workspace)).ran
    assert sum(local.values()) == ACTIONS
    assert not [place for place in local if place.startswith("remote")]
    assert digests(workspace) == remote


def test_nothing_runs_a_second_time(workspace: Workspace, executor: Executor) -> None:
    workspace.bazel("clean")
    built = good(build(workspace, *use(executor)))
    assert built.ran == {"remote cache hit": ACTIONS}


def test_a_policy_keeps_actions_off_the_workers(workspace: Workspace, executor: Executor) -> None:
    workspace.edit(
        "BUILD.bazel", "max_cache_len = 32,", 'max_cache_len = 33, remote = "no_upload",'
    )
    built = good(build(workspace, *use(executor), targets=["//:export"]))
    assert sum(built.ran.values()) == 1
    assert "remote" not in built.ran and "remote cache hit" not in built.ran
    workspace.edit(
        "BUILD.bazel", 'max_cache_len = 33, remote = "no_upload",', "max_cache_len = 32,"
    )


def test_an_action_that_is_killed_fails_the_build_and_is_not_remembered(
    workspace: Workspace, executor: Executor
) -> None:
    seed(workspace, 1)
    built = build(
        workspace,
        *use(executor),
        targets=CHECKPOINT,
        meanwhile=lambda: executor.kill_action("python/main.py"),
    )
    assert built.status == 1, built.text
    assert "Making the random checkpoint //:checkpoint failed: (Killed)" in built.text
    assert workspace.outputs("checkpoint/*.safetensors") == []

    built = good(build(workspace, *use(executor), targets=CHECKPOINT))
    assert built.ran == {"remote": 1}
    assert digests(workspace, *use(executor), targets=CHECKPOINT) == locally(workspace)


def test_an_executor_that_is_killed_fails_the_build_unless_it_may_run_here(
    workspace: Workspace, executor: Executor, tmp_path: Path
) -> None:
    seed(workspace, 2)
    built = build(
        workspace,
        *use(executor),
        targets=CHECKPOINT,
        meanwhile=lambda: executor.kill_during("python/main.py"),
    )
    assert built.status == 34, built.text
    assert "Making the random checkpoint //:checkpoint failed: (Exit 34): UNAVAILABLE" in built.text
    assert workspace.outputs("checkpoint/*.safetensors") == []

    # Bazel would upload its profile for the build events, and fail when all else is done.
    fallback = ("--remote_local_fallback", "--nobuild_event_json_file_path_conversion")
    built = good(build(workspace, *use(executor), *fallback, targets=CHECKPOINT))
    assert "remote" not in built.ran and sum(built.ran.values()) == 1
    here = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in (workspace.folder / "bazel-bin" / "checkpoint").iterdir()
        if file.suffix != ".params"
    }
    assert here == locally(workspace)

    # What it kept of the action that it did not finish is not taken for a result.
    workspace.bazel("clean")
    with Executor(tmp_path, executor.data) as restarted:
        built = good(build(workspace, *use(restarted), targets=CHECKPOINT))
        assert built.ran == {"remote": 1}
        assert digests(workspace, *use(restarted), targets=CHECKPOINT) == here


@pytest.mark.parametrize("namespaces", [True, False])
def test_the_executor_works_with_and_without_namespaces(
    workspace: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    namespaces: bool,
) -> None:
    """A machine with namespaces shows both, and one without them its own case twice."""
    if not namespaces:
        monkeypatch.setattr(engines, "has_namespaces", lambda: False)
    (workspace.folder / "small").mkdir(exist_ok=True)
    (workspace.folder / "small" / "BUILD.bazel").write_text(SMALL)
    workspace.bazel("clean")
    with Executor(tmp_path) as executor:
        built = good(build(workspace, *use(executor), targets=["//small"]))
    assert built.ran == {"remote": 1}
    printed = workspace.output("small/small.txt").read_text()
    assert "HOME=" not in printed


def seed(workspace: Workspace, number: int) -> None:
    """Gives the checkpoint another content."""
    path = workspace.folder / "BUILD.bazel"
    text, count = re.subn(
        r'config = "config.json",(\n    seed = \d+,)?',
        f'config = "config.json",\n    seed = {number},',
        path.read_text(),
    )
    assert count == 1
    path.write_text(text)


def locally(workspace: Workspace) -> dict[str, str]:
    """sha256 of the files of the checkpoint as this machine makes them, with pinned packages."""
    assert "remote" not in good(build(workspace, targets=CHECKPOINT)).ran
    return digests(workspace, targets=CHECKPOINT)
