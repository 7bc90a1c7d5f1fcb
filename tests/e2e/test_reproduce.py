"""`bazel run //tools:reproduce`: on a program of ours, and on targets that are not reproducible."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
from nested import Workspace, cache

from rules_executorch.cli import main
from rules_executorch.records.reproduce import find_bazel

UNSOUND = """
genrule(
    name = "unsound",
    outs = ["moment.json", "moment.txt", "fixed.txt"],
    cmd = "echo [$$(date +%s%N)] | tee $(location moment.json) > $(location moment.txt)" +
          " && echo same > $(location fixed.txt)",
)
"""


@pytest.fixture
def person(here: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of the tool when `bazel run` starts it in the workspace."""
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(here.folder))
    monkeypatch.setenv("BAZELW", str(here.bazelw))
    monkeypatch.setenv("RULES_EXECUTORCH_CACHE", str(cache()))


def test_a_program_is_reproducible(
    person: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """Workers against processes of their own, and all that CONDITIONS change."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    status = main(["reproduce", "//:program"])
    printed = capsys.readouterr()
    assert status == 0, printed.out + printed.err
    assert re.search(r"^[0-9a-f]{64}  \S+/program\.pte$", printed.out, re.M)
    assert re.search(r"^[0-9a-f]{64}  \S+/export\.pt2$", printed.out, re.M)
    count = re.search(r"^All (\d+) files have the same bytes", printed.out, re.M)
    # A checkpoint, its description, an export, a program, and what is stated about it.
    assert count and int(count[1]) >= 14
    assert list(tmp_path.iterdir()) == [], "the output bases and the workers' folders are gone"


def test_what_is_not_reproducible_is_told(here: Workspace) -> None:
    with (here.folder / "BUILD.bazel").open("a") as file:
        file.write(UNSOUND)
    run = here.bazel("run", "@rules_executorch//tools:reproduce", "--", "//:unsound", ok=False)
    assert re.search(
        r"^\S+/bin/moment\.json differs:\n  \[0\] is \d+ in the first and \d+ in the second$",
        run.text,
        re.MULTILINE,
    ), run.text
    assert "moment.txt differs:\n  line 1 is " in run.text
    assert "fixed.txt differs" not in run.text
    assert re.search(r"^2 of \d+ files are not reproducible\.$", run.text, re.MULTILINE)


def test_a_target_that_does_not_build_is_told(
    person: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "//:nothing"]) == 1
    error = capsys.readouterr().err
    assert "no such target '//:nothing'" in error
    assert "Mend that first" in error


def test_it_runs_in_a_workspace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("BUILD_WORKSPACE_DIRECTORY", raising=False)
    assert main(["reproduce", "//:program"]) == 1
    assert "This runs in a workspace." in capsys.readouterr().err


def test_the_bazel_that_builds(tmp_path: Path) -> None:
    folder = tmp_path / "path"
    folder.mkdir()
    for place in (folder / "bazel", tmp_path / "bazelw"):
        place.write_text("#!/bin/sh\n")
        place.chmod(0o755)
    environ = {"PATH": str(folder)}
    assert find_bazel(tmp_path, environ) == str(tmp_path / "bazelw")
    assert find_bazel(tmp_path / "elsewhere", environ) == str(folder / "bazel")
    assert find_bazel(tmp_path, environ | {"BAZELW_BAZEL": "/our/bazel"}) == "/our/bazel"
    assert find_bazel(tmp_path, environ | {"BAZELW_BAZEL": "prefix"}) == str(tmp_path / "bazelw")
