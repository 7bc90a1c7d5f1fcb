"""What a release archive of this checkout holds is enough for an app, and is for apps alone."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import archive
import lint
import nested
import pytest

ROOT = lint.checkout()


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of the files as they are in the checkout, committed or not, unpacked."""
    folder = tmp_path_factory.mktemp("archive")
    copy = folder / "checkout"
    for name in lint.tracked(ROOT):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes((ROOT / name).read_bytes())
        (copy / name).chmod((ROOT / name).stat().st_mode)
    who = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message=One"]):
        subprocess.run(["git", *who, "-C", copy, *command], check=True)
    with tarfile.open(fileobj=io.BytesIO(archive.archive(copy, "HEAD", "0.0.1"))) as tar:
        tar.extractall(folder, filter="data")
    return folder / "rules_executorch-0.0.1"


@pytest.fixture
def app(unpacked: Path, tmp_path: Path) -> Iterator[nested.Workspace]:
    """An app's workspace on the unpacked archive, with an output base of its own."""
    workspace = nested.Workspace(tmp_path / "app", tmp_path / "output_base")
    workspace.edit("MODULE.bazel", str(nested.CHECKOUT), str(unpacked))
    yield workspace
    workspace.shutdown()


def test_nothing_of_the_development_is_in_it(unpacked: Path) -> None:
    assert sorted(path.name for path in unpacked.iterdir()) == [
        ".bazelignore",
        "BUILD.bazel",
        "CHANGELOG.md",
        "LICENSE",
        "MODULE.bazel",
        "README.md",
        "REPO.bazel",
        "SECURITY.md",
        "docs",
        "e2e",
        "executorch",
        "python",
        "tools",
    ]
    assert [path.name for path in (unpacked / "e2e").iterdir()] == ["smoke"]
    packages = sorted(str(path.parent.relative_to(unpacked)) for path in unpacked.rglob("BUILD*"))
    assert [name for name in packages if name.startswith("tools")] == ["tools", "tools/toolchain"]


def test_an_app_can_be_analysed_with_it(app: nested.Workspace) -> None:
    app.bazel("build", "--nobuild", "//...")
