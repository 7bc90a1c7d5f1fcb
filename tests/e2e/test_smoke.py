"""An app's workspace from build to rebuild, with what goes wrong on the way.

One Bazel server serves the tests of this file, which run in order.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from nested import Run, Workspace

CONFIG = json.loads((Path(__file__).resolve().parents[2] / "e2e/smoke/config.json").read_text())


ACTIONS = {"HfModelTiny": 1, "HfModelDescribe": 1, "ExecutorchExport": 1, "ExecutorchLower": 1}
STEPS = re.compile(r"//:program  lower: delegates, (\d+) of (\d+), ")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    folder = tmp_path_factory.mktemp("smoke")
    workspace = Workspace(folder / "app", folder / "output_base")
    yield workspace
    workspace.shutdown()


@pytest.fixture(scope="module")
def progress(workspace: Workspace) -> Path:
    """A file that the worker writes progress to, beside its log."""
    return workspace.folder.with_name("progress.txt")


def test_an_app_builds_and_its_program_is_right(workspace: Workspace, progress: Path) -> None:
    flag = f"--worker_extra_flag=ExecutorchLower=--progress={progress}"
    run = workspace.bazel("test", flag, "--output_groups=+timings", "//...")
    assert {
        name: run.executed[name] for name in run.executed if name.startswith(("Exec", "Hf"))
    } == ACTIONS
    assert "From Lowering" not in run.text, "a successful action has nothing to say"


def test_a_worker_tells_its_progress(workspace: Workspace, progress: Path) -> None:
    logs = {
        mnemonic: "".join(
            log.read_text() for log in workspace.output_base.glob(f"bazel-workers/*-{mnemonic}.log")
        )
        for mnemonic in ("ExecutorchExport", "ExecutorchLower")
    }
    assert "//:export  export: trace the model, " in logs["ExecutorchExport"]
    steps = [(int(done), int(total)) for done, total in STEPS.findall(logs["ExecutorchLower"])]
    assert steps[0][0] == 0 and steps[-1][0] == steps[-1][1] > 0
    assert "//:program  lower: done, " in progress.read_text()
    assert STEPS.findall(progress.read_text()) == STEPS.findall(logs["ExecutorchLower"])
    timings = json.loads(workspace.output("program.timings.json").read_text())
    assert timings["seconds"] > 0 and timings["peak_rss_bytes"] > 100_000_000


def test_nothing_is_left_to_do(workspace: Workspace) -> None:
    """Nor is where progress goes a part of an action."""
    assert workspace.bazel("test", "//...").executed == {}


def test_every_action_declares_what_it_needs(workspace: Workspace) -> None:
    heavy = "mnemonic('Executorch.*|HfModel.*', deps(//...))"
    actions = workspace.query("aquery", heavy).split("\n\n")
    actions = [action for action in actions if "Mnemonic: " in action]
    assert len(actions) >= 4
    for action in actions:
        assert "block-network: 1" in action
        assert "supports-path-mapping: 1" in action
        assert "PYTHONHASHSEED=0" in action and "HOME=" not in action
        assert str(workspace.folder) not in action, "an absolute path"
    exports = [action for action in actions if "Mnemonic: ExecutorchExport" in action]
    assert len(exports) == 1
    assert ".safetensors" not in exports[0], "an export that reads weights"


def test_another_platform_and_compilation_mode_cost_nothing(workspace: Workspace) -> None:
    run = workspace.bazel("build", "//:program", "--platforms=//:phone", "--compilation_mode=opt")
    assert not [name for name in run.executed if name.startswith(("Executorch", "HfModel"))]


def test_the_program_answers(workspace: Workspace) -> None:
    run = workspace.bazel(
        "run", "//:generate", "--", "--prompt", "@home says hi", "--max-new-tokens=4"
    )
    assert "tokens/s" in run.text


def test_other_weights_are_lowered_and_not_exported(workspace: Workspace) -> None:
    workspace.edit(
        "BUILD.bazel", 'config = "config.json",', 'config = "config.json",\n    seed = 1,'
    )
    run = workspace.bazel("build", "//:program")
    assert run.executed["HfModelDescribe"] == 1
    assert run.executed["ExecutorchLower"] == 1
    assert "ExecutorchExport" not in run.executed


def test_processes_write_the_bytes_of_workers(workspace: Workspace) -> None:
    warm = workspace.digests(("//:export", "//:program"))
    workspace.bazel("clean")
    logs = sorted(workspace.output_base.glob("bazel-workers/*.log"))
    run = workspace.bazel("build", "--spawn_strategy=local", "//:export", "//:program")
    assert {name: run.executed.get(name) for name in ACTIONS} == ACTIONS
    assert sorted(workspace.output_base.glob("bazel-workers/*.log")) == logs
    assert "From Lowering" not in run.text
    assert workspace.digests(("//:export", "//:program")) == warm


LACKING = """\
load("@rules_executorch//executorch:defs.bzl", "executorch_device", "executorch_lower")

executorch_device(name = "device", backend = "portable", allowed_operators = ["aten::*"])
executorch_lower(name = "program", device = ":device", exported = "//:export")
"""


def test_an_operator_that_the_runtime_lacks_fails_a_plain_build(workspace: Workspace) -> None:
    visible = 'name = "export",\n    visibility = ["//lacking:__pkg__"],'
    workspace.edit("BUILD.bazel", 'name = "export",', visible)
    (workspace.folder / "lacking").mkdir()
    (workspace.folder / "lacking/BUILD.bazel").write_text(LACKING)
    run = workspace.bazel("build", "//lacking:program", ok=False)
    refusal = run.refusal("//lacking:program")
    assert "operators that the runtime of //lacking:device lacks" in refusal
    assert "It would pass with these in allowed_operators" in refusal
    assert '"dim_order_ops::_to_dim_order_copy.out"' in refusal

    workspace.edit("lacking/BUILD.bazel", '"aten::*"', '"aten::*", "dim_order_ops::*"')
    run = workspace.bazel("build", "//lacking:program")
    assert run.executed["ExecutorchCheck"] == 1
    assert "ExecutorchLower" not in run.executed


DEEP = """\
load(
    "@rules_executorch//executorch:defs.bzl",
    "executorch_export",
    "executorch_lower",
    "hf_model",
    "tiny_checkpoint",
)

tiny_checkpoint(name = "checkpoint", config = "config.json")
hf_model(name = "checkpoint_model", srcs = [":checkpoint"], task = "text-generation")
executorch_export(name = "export", model = ":checkpoint_model", max_cache_len = 32)
executorch_lower(
    name = "program",
    device = "@rules_executorch//executorch/devices:host_x86_64_xnnpack",
    exported = ":export",
)
"""


def test_an_interrupted_lowering_leaves_nothing(workspace: Workspace) -> None:
    """Of a model so deep that its lowering cannot end before it is interrupted."""
    (workspace.folder / "deep").mkdir()
    (workspace.folder / "deep/BUILD.bazel").write_text(DEEP)
    config = json.dumps(CONFIG | {"num_hidden_layers": 12})
    (workspace.folder / "deep/config.json").write_text(config)
    workspace.bazel("build", "//deep:export")
    process = subprocess.Popen(
        workspace.command("build", "//deep:program"),
        cwd=workspace.folder,
        env=workspace.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout
    printed = []
    for line in process.stdout:
        printed.append(line)
        if "Lowering //deep:program" in line and "Prepa" not in line:
            break
    process.send_signal(signal.SIGINT)
    printed += process.stdout.readlines()
    assert process.wait() == 8, "".join(printed)
    assert workspace.outputs("deep/program.pte") == []
    assert workspace.outputs("deep/program.manifest.json") == []
    assert workspace.outputs("**/*.part") == []

    assert workspace.bazel("build", "//deep:program").executed["ExecutorchLower"] == 1
    assert workspace.output("deep/program.pte").stat().st_size > 0


OWN_TOOLCHAIN = """\
load("@rules_executorch//executorch:toolchain.bzl", "executorch_toolchain")

executorch_toolchain(
    name = "python",
    launcher = "python.sh",
    marker = "versions.json",
)

toolchain(
    name = "toolchain",
    toolchain = ":python",
    toolchain_type = "@rules_executorch//executorch:toolchain_type",
)
"""


def test_other_packages_rebuild_and_the_same_do_not(workspace: Workspace) -> None:
    """The marker of what is installed is part of every action's key."""
    launchers = list(workspace.output_base.glob("external/*_pinned/launcher"))
    assert launchers
    folder = workspace.folder / "own"
    folder.mkdir()
    (folder / "BUILD.bazel").write_text(OWN_TOOLCHAIN)
    (folder / "python.sh").write_text(f'#!/bin/bash\nexec "{launchers[0]}" "$@"\n')
    (folder / "python.sh").chmod(0o755)
    for version, actions in (("1", 1), ("2", 1), ("2", None)):
        (folder / "versions.json").write_text(json.dumps({"torch": version}))
        run = workspace.bazel("build", "--extra_toolchains=//own:toolchain", "//:program")
        assert run.executed.get("ExecutorchExport") == actions, f"version {version}"
        assert run.executed.get("ExecutorchLower") == actions, f"version {version}"


# Name of the package: files of its checkpoint that differ from a sound one (None for "leave out"),
# attributes of its targets, which target is refused, and words of the refusal.
BAD = {
    "missing_shard": dict(
        files={
            "model.safetensors": None,
            "model-00001-of-00002.safetensors": "model.safetensors",
            "model.safetensors.index.json": json.dumps(
                {
                    "metadata": {},
                    "weight_map": {
                        "lm_head.weight": "model-00001-of-00002.safetensors",
                        "model.norm.weight": "model-00002-of-00002.safetensors",
                    },
                }
            ),
        },
        refused="model",
        words=["model-00002-of-00002.safetensors"],
    ),
    "truncated": dict(
        files={"model.safetensors": 1000}, refused="model", words=["model.safetensors"]
    ),
    "no_json": dict(files={"config.json": "{"}, refused="model", words=["config.json", "JSON"]),
    "remote_code": dict(
        files={
            "config.json": json.dumps(
                CONFIG | {"auto_map": {"AutoModelForCausalLM": "modeling.Model"}}
            )
        },
        refused="model",
        words=["auto_map"],
    ),
    "unknown_architecture": dict(
        files={
            "config.json": json.dumps(
                CONFIG | {"model_type": "abacus", "architectures": ["AbacusForCausalLM"]}
            )
        },
        refused="model",
        words=["abacus"],
    ),
    "pickled": dict(
        files={"model.safetensors": None, "pytorch_model.bin": "model.safetensors"},
        refused="model",
        words=["pytorch_model.bin is pickled", "save_pretrained"],
    ),
    "no_config": dict(
        files={"config.json": None}, refused="model", words=["srcs has no config.json"]
    ),
    "long_cache": dict(export="max_cache_len = 65", refused="export", words=["65", "64"]),
    "no_cache": dict(export="max_cache_len = 0", refused="export", words=["needs max_cache_len"]),
    "bfloat16": dict(
        export='max_cache_len = 32, dtype = "bfloat16"',
        refused="program",
        words=["bfloat16", "xnnpack", "allow_undelegated"],
    ),
    "unknown_backend": dict(
        device='backend = "abacus"', refused="device", words=["abacus", '"portable"', '"xnnpack"']
    ),
    "unknown_option": dict(
        device='backend = "xnnpack", options = {"beads": 10}',
        refused="device",
        words=['The backend xnnpack has no option "beads".', "per_op_mode"],
    ),
}

BUILD = """\
load(
    "@rules_executorch//executorch:defs.bzl",
    "executorch_device",
    "executorch_export",
    "executorch_lower",
    "hf_model",
)

hf_model(name = "model", srcs = glob(["checkpoint/*"]))

executorch_export(name = "export", model = ":model", {export})

executorch_device(name = "device", {device})

executorch_lower(name = "program", device = ":device", exported = ":export")
"""


@pytest.fixture(scope="module")
def refused(workspace: Workspace) -> Run:
    """All bad packages, built at once from copies of a sound checkpoint."""
    sound = workspace.output("checkpoint")
    for name, case in BAD.items():
        package = workspace.folder / "bad" / name
        shutil.copytree(sound, package / "checkpoint")
        for file in (package / "checkpoint").iterdir():
            file.chmod(0o644)
        for file, content in case.get("files", {}).items():
            path = package / "checkpoint" / file
            if content is None:
                path.unlink()
            elif isinstance(content, int):
                path.write_bytes(path.read_bytes()[:-content])
            elif content == "model.safetensors":
                shutil.copy(sound / content, path)
            else:
                path.write_text(content)
        (package / "BUILD.bazel").write_text(
            BUILD.format(
                export=case.get("export", "max_cache_len = 32"),
                device=case.get("device", 'backend = "xnnpack"'),
            )
        )
    return workspace.bazel("build", "--keep_going", "//bad/...", ok=False)


@pytest.mark.parametrize("name", BAD)
def test_a_mistake_is_refused_in_words(workspace: Workspace, refused: Run, name: str) -> None:
    case = BAD[name]
    refusal = refused.refusal(f"//bad/{name}:{case['refused']}")
    for word in case["words"]:
        assert word in refusal
    assert refusal.endswith((".", "'DIR.safetensors')\""))
    assert 'File "/' not in refusal, "a traceback"
    assert workspace.outputs(f"bad/{name}/*.pte") == []
    assert workspace.outputs(f"bad/{name}/**/*.part") == []
    if case["refused"] == "model":
        assert workspace.outputs(f"bad/{name}/model.model/*.json") == []
    if case["refused"] != "program":
        assert case["refused"] == "device" or workspace.outputs(f"bad/{name}/*.pt2") == []
