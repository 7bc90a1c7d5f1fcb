"""The same bytes from another checkout, output base, HOME, hash seed and locale, no workers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from nested import Workspace, copy_checkout

TARGETS = ("//:export", "//:program")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """The workspace as anyone would build it; workers run its actions."""
    folder = tmp_path_factory.mktemp("here")
    workspace = Workspace(folder / "app", folder / "output_base")
    yield workspace
    workspace.shutdown()


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """The same with everything different that should not matter."""
    folder = tmp_path_factory.mktemp("there") / "a folder #1"
    checkout = folder / "rules of executorch"
    copy_checkout(checkout)
    trap = folder / "trap"
    trap.mkdir()
    (trap / "sitecustomize.py").write_text(
        "raise SystemExit('code of the user ran in an action')\n"
    )
    home = folder / "home"
    home.mkdir()
    env = {
        "HOME": str(home),
        "LC_ALL": "C",
        "PYTHONHASHSEED": "7",
        "PYTHONPATH": str(trap),
        "TZ": "Asia/Kathmandu",
    }
    workspace = Workspace(folder / "my app", folder / "output_base", checkout, env)
    (workspace.folder / ".bazelrc").open("a").write(
        "build --spawn_strategy=sandboxed --jobs=1 --compilation_mode=opt\n"
        "build --action_env=PYTHONHASHSEED=7 --action_env=PYTHONPATH --action_env=HOME\n"
    )
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
