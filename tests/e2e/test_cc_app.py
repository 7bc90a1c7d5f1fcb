"""A C++ app links the runtime of the toolchain and runs its model, which is lowered once.

The model calls operators of the LLM extension; its weights are in it, or in a file of their own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from nested import Workspace, eager_argmax

TOKENS = [5, 9, 11, 250, 3]


@pytest.fixture(scope="module")
def workspace(app_workspace: Callable[[str], Workspace]) -> Workspace:
    workspace = app_workspace("cc_app")
    workspace.bazel("build", "//...")
    return workspace


def test_the_app_prints_the_argmax_of_eager(workspace: Workspace) -> None:
    expected = f"argmax {eager_argmax(workspace.output('checkpoint'), TOKENS)} of 288"
    tokens = [str(token) for token in TOKENS]
    assert expected in workspace.bazel("run", "//:app", "--", *tokens).text

    # As a person starts it, from any folder.
    binary = workspace.folder / "bazel-bin" / "app"
    env = {name: value for name, value in os.environ.items() if not name.startswith("RUNFILES")}
    printed = subprocess.run([binary, *tokens], cwd="/", env=env, capture_output=True, text=True)
    assert printed.stdout == expected + "\n", printed.stderr


def test_an_app_for_three_platforms_costs_one_export_and_one_lowering(
    workspace: Workspace,
) -> None:
    actions = json.loads(workspace.query("aquery", "--output=jsonproto", "deps(//:everywhere)"))[
        "actions"
    ]
    counts = Counter(action["mnemonic"] for action in actions)
    assert counts["ExecutorchExport"] == 1
    assert counts["ExecutorchLower"] == 1
    assert counts["HfModelDescribe"] == 1

    cquery = workspace.query(
        "cquery", "--output=files", 'filter("^//:assistant$", deps(//:everywhere))'
    )
    models = {line for line in cquery.splitlines() if line.endswith("/assistant/model.pte")}
    assert len(models) == 3
    assert len({os.path.realpath(workspace.folder / model) for model in models}) == 1


def run_app(workspace: Workspace, runfiles: Path, tokens: list[str]) -> tuple[str, str]:
    """Runs the app on an assistant in a folder; gives what it printed and logged."""
    done = subprocess.run(
        [workspace.folder / "bazel-bin" / "app", *tokens],
        env={**os.environ, "RUNFILES_DIR": str(runfiles)},
        capture_output=True,
        text=True,
    )
    return done.stdout, done.stderr


def test_the_app_runs_a_program_with_its_weights_in_a_data_file(
    workspace: Workspace, tmp_path: Path
) -> None:
    program = workspace.folder / "bazel-bin" / "assistant" / "model.pte"
    whole = program.stat().st_size
    tokens = [str(token) for token in TOKENS]
    expected = workspace.bazel("run", "//:app", "--", *tokens).text.splitlines()[-1]
    assert expected.startswith("argmax ")

    workspace.edit(
        "BUILD.bazel", "    max_cache_len", "    external_data = True,\n    max_cache_len"
    )
    workspace.bazel("build", "//:app", "//:assistant")
    data = program.with_suffix(".ptd")
    embeddings = 2 * 288 * 32 * 4
    assert data.stat().st_size > embeddings
    assert program.stat().st_size < whole - embeddings
    assert expected in workspace.bazel("run", "//:app", "--", *tokens).text

    folder = tmp_path / "_main" / "assistant"
    folder.mkdir(parents=True)
    shutil.copy(program, folder)
    printed, logged = run_app(workspace, tmp_path, tokens)
    assert printed == "" and "The program did not run" in logged
    shutil.copy(data, folder)
    assert run_app(workspace, tmp_path, tokens)[0] == expected + "\n"

    # Phones and laptops map the same file.
    workspace.bazel("build", "//:everywhere")
    links = workspace.outputs("assistant/model.ptd")
    assert len(links) > 2 and len({os.path.realpath(link) for link in links}) == 1


def test_a_runtime_without_the_kernels_of_the_llm_extension_says_so(
    workspace: Workspace,
) -> None:
    linked = '"@rules_executorch//executorch/runtime:llm_custom_ops",'
    workspace.edit("BUILD.bazel", linked, "")
    run = workspace.bazel("run", "//:app", "--", "5", ok=False)
    assert "Missing operator" in run.text and "llama::custom_sdpa" in run.text
    workspace.edit(
        "BUILD.bazel",
        '"@rules_executorch//executorch/runtime",',
        f'"@rules_executorch//executorch/runtime", {linked}',
    )


def test_a_platform_that_no_program_fits_is_refused(workspace: Workspace) -> None:
    workspace.edit("BUILD.bazel", '"@platforms//os:android"', '"@platforms//os:none"')
    workspace.edit(
        "BUILD.bazel",
        '"@rules_executorch//executorch/devices:host_arm64_xnnpack",\n',
        "",
    )
    run = workspace.bazel("build", "//:assistant", "--platforms=//:phone", ok=False)
    refusal = run.refusal("//:assistant")
    for words in (
        "No program fits the platform //:phone (known of it: @platforms//cpu:aarch64, "
        "@platforms//os:none)",
        "//:assistant_android_arm64_xnnpack for ",
        "which wants @platforms//cpu:aarch64, @platforms//os:android; the platform does not have "
        "@platforms//os:android",
        "Add to programs",
    ):
        assert words in refusal


@pytest.mark.parametrize(
    ("devices", "words"),
    [
        ("[]", "executorch_model bad: devices is empty. Write for example"),
        ('["//a:phone", "//b:phone"]', "//a:phone and //b:phone have the same name"),
        ('{"//a:phone": {"beads": 1}}', 'devices["//a:phone"] has "beads"'),
    ],
    ids=["none", "same-name", "unknown-option"],
)
def test_a_mistake_in_devices_is_refused_in_words(
    workspace: Workspace, devices: str, words: str
) -> None:
    package = workspace.folder / "bad"
    package.mkdir(exist_ok=True)
    (package / "BUILD.bazel").write_text(
        'load("@rules_executorch//executorch:defs.bzl", "executorch_model")\n'
        f'executorch_model(name = "bad", devices = {devices}, model = "//:model")\n'
    )
    assert words in workspace.bazel("build", "//bad:all", ok=False).text
