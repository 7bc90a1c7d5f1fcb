"""The archive of a release: what is in it, and that it has the same bytes wherever it is made."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import subprocess
import tarfile
from pathlib import Path

import archive
import pytest

CHANGELOG = """\
# Changelog

## [Unreleased]

## [1.2.3] - 2026-01-31

### Added

- A thing.

## [1.2.2] - 2026-01-01

- Another.

[1.2.3]: https://example.com
"""
FILES = {
    ".gitattributes": "/tests export-ignore\n/e2e/* export-ignore\n/e2e/smoke -export-ignore\n",
    "CHANGELOG.md": CHANGELOG,
    "MODULE.bazel": 'module(\n    name = "rules_executorch",\n    version = "1.2.3",\n)\n',
    "e2e/other/BUILD.bazel": "",
    "e2e/smoke/BUILD.bazel": "",
    "python/rules_executorch/__init__.py": '__version__ = "1.2.3"\n',
    "tests/BUILD.bazel": "",
    "tool.sh": "#!/bin/sh\n",
}


def _git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    date = {"GIT_AUTHOR_DATE": "1700000000 +0000", "GIT_COMMITTER_DATE": "1700000000 +0000"}
    command = ["git", *who, "-C", folder, *arguments]
    subprocess.run(command, check=True, capture_output=True, env=os.environ | date)


def repository(folder: Path, changed: dict[str, str]) -> Path:
    """A repository with a tag."""
    folder.mkdir()
    _git(folder, "init", "--quiet")
    for name, text in (FILES | changed).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "tool.sh").chmod(0o755)
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message=One")
    _git(folder, "tag", "v1.2.3")
    return folder


def run(root: Path, out: Path, monkeypatch: pytest.MonkeyPatch, tag: str = "v1.2.3") -> int:
    """Runs the tool in a checkout, as `bazel run` does."""
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(root))
    return archive.main(["--tag", tag, "--out", str(out)])


def test_what_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path / "one", {})
    (root / "MODULE.bazel").write_text("changed after the tag")
    assert run(root, tmp_path / "out", monkeypatch) == 0
    packed = (tmp_path / "out" / "rules_executorch-v1.2.3.tar.gz").read_bytes()
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        files = {m.name: m for m in tar if m.isfile()}
        module = tar.extractfile(files["rules_executorch-1.2.3/MODULE.bazel"])
        assert module and module.read().decode() == FILES["MODULE.bazel"]
    assert sorted(name.removeprefix("rules_executorch-1.2.3/") for name in files) == [
        ".gitattributes",
        "CHANGELOG.md",
        "MODULE.bazel",
        "e2e/smoke/BUILD.bazel",
        "python/rules_executorch/__init__.py",
        "tool.sh",
    ]
    assert {m.mtime for m in files.values()} == {1700000000}
    assert files["rules_executorch-1.2.3/tool.sh"].mode == 0o755
    assert (tmp_path / "out" / "notes.md").read_text() == "### Added\n\n- A thing.\n"
    digest = hashlib.sha256(packed).hexdigest()
    sums = (tmp_path / "out" / "SHA256SUMS").read_text()
    assert sums == f"{digest}  rules_executorch-v1.2.3.tar.gz\n"


def test_the_same_bytes_on_another_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = repository(tmp_path / "one", {})
    assert run(one, tmp_path / "a", monkeypatch) == 0
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "attributes").write_text("* export-ignore\n")
    (tmp_path / "home" / ".gitconfig").write_text(
        f"[tar]\n\tumask = 0077\n[core]\n\tattributesFile = {tmp_path}/home/attributes\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    before = os.umask(0o077)
    try:
        two = repository(tmp_path / "elsewhere", {})
        assert run(two, tmp_path / "b", monkeypatch) == 0
    finally:
        os.umask(before)
    name = "rules_executorch-v1.2.3.tar.gz"
    assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert gzip.decompress((tmp_path / "a" / name).read_bytes())[257:262] == b"ustar"


@pytest.mark.parametrize(
    ("changed", "tag", "says"),
    [
        ({}, "1.2.3", "not a tag of the form"),
        ({}, "v1.2.4", "no tag v1.2.4"),
        ({"MODULE.bazel": 'module(version = "1.2.2")\n'}, "v1.2.3", "MODULE.bazel says 1.2.2"),
        (
            {"python/rules_executorch/__init__.py": ""},
            "v1.2.3",
            "python/rules_executorch/__init__.py says none",
        ),
        ({"CHANGELOG.md": "## [Unreleased]\n\n- A thing.\n"}, "v1.2.3", "nothing below"),
        ({"CHANGELOG.md": "## [1.2.3]\n\n## [1.2.2]\n\n- A thing.\n"}, "v1.2.3", "nothing below"),
    ],
    ids=["no tag", "another tag", "module", "package", "no notes", "empty notes"],
)
def test_refusals(
    changed: dict[str, str],
    tag: str,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = repository(tmp_path / "one", changed)
    assert run(root, tmp_path / "out", monkeypatch, tag) == 1
    assert says in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
