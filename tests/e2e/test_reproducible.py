"""The same bytes from another checkout, output base, HOME, hash seed and locale, no workers.

The other HOME and its variables are full of traps, which neither a sandboxed action nor a worker
springs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from nested import Workspace, copy_checkout
from traps import Traps

TARGETS = ("//:export", "//:program")


@pytest.fixture(scope="module")
def traps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traps]:
    with Traps(tmp_path_factory.mktemp("traps")) as traps:
        yield traps


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory, traps: Traps) -> Iterator[Workspace]:
    """The same with everything different that should not matter."""
    folder = tmp_path_factory.mktemp("there") / "a folder #1"
    checkout = folder / "rules of executorch"
    copy_checkout(checkout)
    env = {"HOME": str(traps.home), "LC_ALL": "C", "TZ": "Asia/Kathmandu"} | traps.variables
    workspace = Workspace(folder / "my app", folder / "output_base", checkout, env)
    lines = [f"build --action_env={name}" for name in ("HOME", *traps.variables)]
    lines.append(f'build "--action_env=NETRC={traps.netrc}"')
    lines += [f"build --action_env={name}={value}" for name, value in traps.proxies.items()]
    lines.append("build --spawn_strategy=sandboxed --jobs=1 --compilation_mode=opt")
    workspace.settings("\n".join([*lines, ""]))
    yield workspace
    workspace.shutdown()


def test_the_bytes_are_the_same(here: Workspace, there: Workspace) -> None:
    first = here.digests(TARGETS)
    assert set(first) == {
        "export.json",
        "export.pt2",
        "program.manifest.json",
        "program.pte",
        "program.report.md",
    }
    assert there.digests(TARGETS) == first


def test_no_path_is_in_the_outputs(here: Workspace) -> None:
    files = [
        file for suffix in ("json", "md", "pt2", "pte") for file in here.outputs(f"*.{suffix}")
    ]
    assert len(files) >= 5
    for file in files:
        for path in (here.output_base, here.folder):
            assert str(path).encode() not in file.read_bytes(), f"{path} is in {file.name}"


def test_declared_packages_give_the_same_bytes(here: Workspace) -> None:
    pinned = here.digests(TARGETS)
    mode = "--@rules_executorch//executorch/settings:toolchain_mode=declared"
    run = here.bazel("build", mode, *TARGETS)
    assert run.executed["ExecutorchExport"] == run.executed["ExecutorchLower"] == 1
    assert here.digests(TARGETS, mode) == pinned


def test_no_sandboxed_action_springs_a_trap(there: Workspace, traps: Traps) -> None:
    there.digests(TARGETS)
    assert traps.sprung() == []


def test_no_worker_springs_a_trap(there: Workspace, traps: Traps) -> None:
    """A worker is started once and lives on: it must not take along what started it."""
    there.edit("BUILD.bazel", 'config = "config.json",', 'config = "config.json",\n    seed = 1,')
    worker = "--spawn_strategy=worker"
    run = there.bazel("build", worker, "--output_groups=description", "//:model")
    assert run.executed["HfModelTiny"] == 1
    assert run.executed["HfModelDescribe"] == 1
    workers = list(there.output_base.glob("bazel-workers/*.log"))
    assert workers, "no worker was started"
    assert traps.sprung() == []
    for variables in worker_environments(there.output_base):
        for name, value in (traps.variables | traps.proxies).items():
            assert variables.get(name) != value, f"{name} is in the environment of a worker"


def worker_environments(output_base: Path) -> list[dict[str, str]]:
    """Environments, as they were started with, of the workers that run in an output base."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            inside = os.readlink(process / "cwd").startswith(str(output_base))
            pairs = (process / "environ").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if inside and b"--persistent_worker" in command:
            found.append(dict(pair.split("=", 1) for pair in pairs if "=" in pair))
    assert found, "no worker runs"
    return found
