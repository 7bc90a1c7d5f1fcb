"""A Java app carries its model as a resource and runs it."""

from __future__ import annotations

import zipfile
from collections.abc import Callable

import pytest
from nested import Workspace, eager_argmax

TOKENS = [7, 200, 41]


@pytest.fixture(scope="module")
def workspace(app_workspace: Callable[[str], Workspace]) -> Workspace:
    return app_workspace("java_app")


def test_the_app_prints_the_argmax_of_eager(workspace: Workspace) -> None:
    run = workspace.bazel("run", "//:app", "--", *map(str, TOKENS))
    assert f"argmax {eager_argmax(workspace.output('checkpoint'), TOKENS)}\n" in run.text


def test_the_program_is_a_resource_and_not_deflated(workspace: Workspace) -> None:
    with zipfile.ZipFile(workspace.folder / "bazel-bin" / "app.jar") as jar:
        entry = jar.getinfo("assistant/model.pte")
        assert entry.compress_type == zipfile.ZIP_STORED
        model = workspace.folder / "bazel-bin" / "assistant" / "model.pte"
        assert jar.read(entry) == model.read_bytes()
        assert "assistant/tokenizer.json" in jar.namelist()
