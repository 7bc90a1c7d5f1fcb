"""Outputs are where docs/outputs.md says, whatever they are built for, and nothing is made twice.

The tests of this file run in order.
"""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest
from nested import CHECKOUT, Run, Workspace

COMMANDS = [
    line.removeprefix("$ ")
    for block in re.findall(
        r"^```console\n(.*?)^```$", (CHECKOUT / "docs/outputs.md").read_text(), re.DOTALL | re.M
    )
    for line in block.splitlines()
]

RELEASE = """
load("@rules_executorch//executorch:defs.bzl", "executorch_release")

executorch_release(
    name = "release",
    programs = [":program"],
)
"""

CONFIGURATIONS = [
    [],
    ["--compilation_mode=opt"],
    ["--platforms=//:phone"],
    ["--platforms=//:phone", "--compilation_mode=dbg"],
]


@pytest.fixture(scope="module")
def workspace(here: Workspace) -> Workspace:
    with (here.folder / "BUILD.bazel").open("a") as file:
        file.write(RELEASE)
    here.bazel("build", "//:program", "//:release")
    return here


def work(run: Run) -> list[str]:
    """The mnemonics of what a build did to models."""
    return [name for name in run.executed if name.startswith(("Executorch", "HfModel"))]


def run_as_written(workspace: Workspace, command: str) -> str:
    """Runs a command of the page, and gives what it printed."""
    program, *arguments = shlex.split(command)
    if program == "bazel":
        if arguments[0] in ("cquery", "query"):
            return workspace.query(*arguments)
        return workspace.bazel(*arguments).text
    assert program == "ls"
    done = subprocess.run(
        ["ls", "-L", *arguments], cwd=workspace.folder, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def test_the_commands_of_the_page_do_what_it_says(workspace: Workspace) -> None:
    printed = {command: run_as_written(workspace, command) for command in COMMANDS}
    assert len(printed) >= 15
    for command, text in printed.items():
        paths = text.splitlines()
        if command.startswith("bazel cquery"):
            assert len(paths) == 1 and (workspace.folder / paths[0]).is_file(), command
        if command.startswith("bazel run"):
            assert "bazel-bin/release.tar is sound" in text
    both = printed["bazel build --show_result=20 //:program //:export"]
    for path in ("program.pte", "export.pt2", "export.json"):
        assert f"  bazel-bin/{path}\n" in both

    everything, programs, tests = (
        set(text.splitlines()) for command, text in printed.items() if "kind(" in command
    )
    assert programs == {"//:program"}
    assert tests == {"//:program_test"}
    assert {"//:checkpoint", "//:export", "//:model", "//:generate", "//:release"} < everything


def test_every_kind_of_the_rules_is_found(workspace: Workspace) -> None:
    lines = workspace.query("query", "kind(rule, //...)", "--output=label_kind").splitlines()
    kinds = {line.split(" ", 1)[0] for line in lines}
    assert {kind for kind in kinds if not kind.startswith("executorch_")} == {"platform"}
    assert len(kinds) > 8


def test_an_app_depends_on_no_tool_of_our_own_development(workspace: Workspace) -> None:
    """The ruleset as the one dependency of a module, all of whose targets were built above."""
    deps = workspace.query("mod", "deps", "rules_executorch")
    assert set(re.findall(r"[├└]───(\w+)@", deps.partition("rules_executorch@")[2])) == {
        "bazel_skylib",
        "platforms",
        "rules_cc",
        "rules_license",
    }


@pytest.mark.parametrize("flags", CONFIGURATIONS, ids=" ".join)
def test_everything_is_below_bazel_bin(workspace: Workspace, flags: list[str]) -> None:
    groups = "--output_groups=+manifest,+report,+sbom,+provenance,+operators,+options"
    targets = ["//:checkpoint", "//:program", "//:export", "//:release"]
    # The first time for what only these groups ask for.
    workspace.bazel("build", groups, *targets)
    run = workspace.bazel("build", *flags, "--show_result=20", groups, *targets)
    assert work(run) == []
    names = [
        "checkpoint/config.json",
        "checkpoint/model.safetensors",
        "export.json",
        "export.pt2",
        "program.manifest.json",
        "program.operators.yaml",
        "program.options.json",
        "program.provenance.json",
        "program.pte",
        "program.report.md",
        "program.sbom.cdx.json",
        "release.tar",
    ]
    for name in names:
        assert f"  bazel-bin/{name}\n" in run.text, "a path that the build does not print"
        assert (workspace.folder / "bazel-bin" / name).is_file()

    asked = f"config({' + '.join(targets)}, target)"
    listed = workspace.query("cquery", *flags, groups, "--output=files", asked).splitlines()
    folder = (workspace.folder / "bazel-bin").resolve()
    files = {(workspace.folder / line).absolute() for line in listed}
    files = {
        folder.parent.parent / file.relative_to(workspace.folder / "bazel-out") for file in files
    }
    assert {folder / name for name in names} <= files
    assert all(file.is_file() and file.is_relative_to(folder) for file in files)


def test_a_build_of_other_targets_beside_finds_them_too(workspace: Workspace) -> None:
    run = workspace.bazel("build", "--show_result=50", "//...")
    assert work(run) == []
    for path in ("program.pte", "export.pt2", "generate", "release.tar"):
        assert f"  bazel-bin/{path}\n" in run.text


def test_a_link_that_was_turned_away_is_refused_in_words(workspace: Workspace) -> None:
    workspace.bazel("clean")
    workspace.bazel("build", "--compilation_mode=opt", "//:release")
    verify = ("run", "@rules_executorch//tools:verify", "--", "bazel-bin/release.tar")
    run = workspace.bazel(*verify, ok=False)
    found = re.search(
        r"flags of the build, before its target, or write (/\S+/release\.tar)\.", run.text
    )
    assert found, run.text
    assert "is sound" in workspace.bazel(*verify[:-1], found[1]).text


def test_one_export_and_one_lowering(workspace: Workspace) -> None:
    heavy = "mnemonic('ExecutorchExport|ExecutorchLower|HfModel.*', deps(//...))"
    actions = workspace.query("aquery", heavy)
    assert sorted(re.findall(r"Mnemonic: (\w+)", actions)) == [
        "ExecutorchExport",
        "ExecutorchLower",
        "HfModelDescribe",
        "HfModelTiny",
    ]
