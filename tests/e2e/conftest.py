"""Workspaces that the tests of several files share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from nested import Workspace


@pytest.fixture(scope="session")
def disk_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The apps' models are one model, and what it costs is paid once for them."""
    return tmp_path_factory.mktemp("disk_cache")


@pytest.fixture(scope="module")
def app_workspace(
    tmp_path_factory: pytest.TempPathFactory, disk_cache: Path
) -> Iterator[Callable[[str], Workspace]]:
    """Makes the workspace of an app from the name of its folder."""
    made: list[Workspace] = []

    def make(example: str) -> Workspace:
        here = tmp_path_factory.mktemp(example)
        workspace = Workspace(here / "app", here / "output_base", example=example)
        # All outputs, also those of actions that come from the cache: tests read some of them.
        workspace.settings(f"build --disk_cache={disk_cache} --remote_download_outputs=all\n")
        made.append(workspace)
        return workspace

    yield make
    for workspace in made:
        workspace.shutdown()


@pytest.fixture(scope="session")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """The smoke workspace as anyone would build it; workers run its actions."""
    folder = tmp_path_factory.mktemp("here")
    workspace = Workspace(folder / "app", folder / "output_base")
    yield workspace
    workspace.shutdown()
