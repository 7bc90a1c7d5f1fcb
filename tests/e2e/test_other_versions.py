"""An app with a lock of its own: older versions, and which patches are in force by their sources.

One Bazel server and one build serve the tests of this file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from nested import Workspace

from rules_executorch import compat

TOSA = "executorch.backends.arm.tosa.partitioner:TOSAPartitioner.partition"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    folder = tmp_path_factory.mktemp("other_versions")
    workspace = Workspace(folder / "app", folder / "output_base", example="other_versions")
    workspace.bazel("test", "--output_groups=+manifest", "//...")
    yield workspace
    workspace.shutdown()


def _manifest(workspace: Workspace, name: str) -> Any:
    return json.loads(workspace.output(f"{name}.manifest.json").read_text())


@pytest.mark.parametrize("name", ["program", "tosa_program"])
def test_the_versions_are_those_of_the_lock(workspace: Workspace, name: str) -> None:
    versions = _manifest(workspace, name)["versions"]
    assert versions["executorch"] == "1.5.0"
    assert versions["transformers"] == "5.18.0"
    assert versions["torch"] == "2.13.0+cpu"


def test_every_patch_whose_sources_are_the_same_is_in_force(workspace: Workspace) -> None:
    patches = _manifest(workspace, "program")["lower"]["patches"]
    of_xnnpack = compat.read_patches("rules_executorch.backends.xnnpack")
    assert patches["active"] == [*(patch.name for patch in compat.PATCHES), *of_xnnpack]
    assert patches["skipped"] == {}


def test_a_patch_made_for_another_source_is_left_out_and_named(workspace: Workspace) -> None:
    patches = _manifest(workspace, "tosa_program")["lower"]["patches"]
    assert patches["active"] == [patch.name for patch in compat.PATCHES]
    (skipped,) = patches["skipped"].items()
    expected = compat.read_patches("rules_executorch.backends.arm")["ordered_tosa_partitions"]
    assert skipped[0] == expected.name
    assert skipped[1].startswith(f"the source of {TOSA} differs: ")
    assert skipped[1].endswith(f" instead of {expected.replaces[TOSA]}")


def test_without_leave_that_is_an_error(workspace: Workspace) -> None:
    refusal = workspace.bazel("build", "//:tosa_refused", ok=False).refusal("//:tosa_refused")
    assert "The bytes of the program would not be reproducible" in refusal
    assert f"the source of {TOSA} differs" in refusal
    assert "allow_noncanonical = True" in refusal
