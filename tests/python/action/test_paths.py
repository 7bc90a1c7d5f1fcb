"""A path means what it meant where a person wrote it."""

import os
from pathlib import Path

import pytest

from rules_executorch.action.paths import given_file
from rules_executorch.common.errors import UserError


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace in which a person calls Bazel, and the outputs of two configurations."""
    for number, folder in enumerate(("k8-opt", "shared"), start=1):
        file = tmp_path / "bazel-out" / folder / "bin" / "app" / "model.pte"
        file.parent.mkdir(parents=True)
        file.write_text(folder)
        os.utime(file, (number, number))
    (tmp_path / "bazel-out/k8-fastbuild/bin").mkdir(parents=True)
    (tmp_path / "bazel-bin").symlink_to(tmp_path / "bazel-out/k8-fastbuild/bin")
    monkeypatch.setenv("BUILD_WORKING_DIRECTORY", str(tmp_path))
    return tmp_path


def test_a_path_is_relative_to_where_bazel_was_called(workspace: Path) -> None:
    (workspace / "release.tar").write_text("")
    assert given_file("release.tar") == str(workspace / "release.tar")
    assert given_file(str(workspace / "release.tar")) == str(workspace / "release.tar")


def test_without_bazel_it_is_relative_to_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BUILD_WORKING_DIRECTORY", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "release.tar").write_text("")
    assert Path(given_file("release.tar")).samefile(tmp_path / "release.tar")


def test_a_link_that_bazel_has_moved_is_named_with_what_it_left(workspace: Path) -> None:
    with pytest.raises(UserError) as caught:
        given_file("bazel-bin/app/model.pte")
    message = str(caught.value)
    assert "bazel-bin/app/model.pte" in message and "flags of the build" in message
    assert "bazel-out/shared/bin/app/model.pte" in message, "the latest"


def test_a_file_that_no_build_made_is_just_missing(workspace: Path) -> None:
    for name in ("bazel-bin/app/other.pte", "other.pte"):
        with pytest.raises(UserError, match=f"There is no file {name}.") as caught:
            given_file(name)
        assert "flags" not in str(caught.value)
