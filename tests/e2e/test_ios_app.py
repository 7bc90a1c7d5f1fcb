"""The resources of an iOS app, built where there is no Xcode."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable

import pytest
from nested import Workspace

from rules_executorch.program.inspect import inspect_program


@pytest.fixture(scope="module")
def workspace(app_workspace: Callable[[str], Workspace]) -> Workspace:
    workspace = app_workspace("ios_app")
    # No Xcode and no registry with rules_apple here.
    workspace.edit("MODULE.bazel", 'include("//:apple.MODULE.bazel")\n', "")
    shutil.rmtree(workspace.folder / "app")
    return workspace


def test_another_platform_gets_no_program(workspace: Workspace) -> None:
    run = workspace.bazel("build", "//:assistant", ok=False)
    refusal = run.refusal("//:assistant")
    assert (
        "ios_arm64_coreml_fp16, which wants @platforms//cpu:aarch64, @platforms//os:ios" in refusal
    )
    assert "the platform does not have @platforms//cpu:aarch64, @platforms//os:ios" in refusal


def test_the_folder_is_for_the_iphone(workspace: Workspace) -> None:
    workspace.bazel("build", "//:assistant", "--platforms=//:iphone")
    folder = workspace.folder / "bazel-bin" / "assistant"
    assert {path.name for path in folder.iterdir()} == {
        "manifest.json",
        "model.pte",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    program = inspect_program(str(folder / "model.pte"))
    assert set(program.methods["forward"].delegates) == {"CoreMLBackend"}
    assert program.constants["get_max_context_len"] == 32
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["program"]["bytes"] == (folder / "model.pte").stat().st_size
    assert manifest["methods"]["forward"]["delegation"]["share"] == 1
    assert manifest["lower"]["options"]["backend_options"] == {
        "compute_precision": "float16",
        "deployment_target": "iOS18",
    }
