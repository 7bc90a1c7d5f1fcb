"""Writes the archive of a release, its digest and its notes.

    bazel run //tools/release:archive -- --tag v1.2.3 --out /tmp/release

`git archive` makes the archive of the commit that the tag names, without what `.gitattributes`
marks. Nothing of the machine gets into it: neither its umask nor its configuration of git, and the
times are the commit's. Only another version of zlib compresses to other bytes.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

NAME = "rules_executorch"


class ReleaseError(Exception):
    """A release that cannot be made, and why."""


def _git(root: Path, *arguments: str) -> bytes:
    # Attributes and umask of whoever runs this would change the archive.
    settings = ("-c", "core.attributesFile=/dev/null", "-c", "tar.umask=0022")
    done = subprocess.run(["git", "-C", root, *settings, *arguments], capture_output=True)
    if done.returncode:
        raise ReleaseError(done.stderr.decode(errors="replace").strip())
    return done.stdout


def _text(root: Path, commit: str, path: str) -> str:
    return _git(root, "show", f"{commit}:{path}").decode("utf-8")


def _commit(root: Path, tag: str) -> str:
    try:
        found = _git(root, "rev-parse", "--verify", f"refs/tags/{tag}^{{commit}}")
    except ReleaseError:
        raise ReleaseError(f"There is no tag {tag}. Make it with `git tag {tag}`.") from None
    return found.decode("ascii").strip()


def check_version(root: Path, commit: str, version: str) -> None:
    """Compares the version of a tag with those that the commit's files give.

    Raises:
        ReleaseError: one of them is another.
    """
    for path, pattern in (
        ("MODULE.bazel", r'^module\([^)]*?\bversion = "([^"]*)"'),
        (f"python/{NAME}/__init__.py", r'^__version__ = "([^"]*)"'),
    ):
        found = re.search(pattern, _text(root, commit, path), re.MULTILINE | re.DOTALL)
        if not found or found[1] != version:
            said = found[1] if found else "none"
            raise ReleaseError(f"The tag is for version {version}; {path} says {said}.")


def notes(changelog: str, version: str) -> str:
    """The section of a version in a changelog in the form of Keep a Changelog.

    Raises:
        ReleaseError: there is no such section, or nothing in it.
    """
    sections = re.split(r"^## ", changelog, flags=re.MULTILINE)
    for section in sections[1:]:
        head, _, body = section.partition("\n")
        if head.startswith(f"[{version}]"):
            body = re.sub(r"^\[[^\]]+\]: .*\n?", "", body, flags=re.MULTILINE).strip()
            if body:
                return body + "\n"
    raise ReleaseError(f"CHANGELOG.md has nothing below `## [{version}]`.")


def archive(root: Path, commit: str, version: str) -> bytes:
    """The `.tar.gz` of a commit, with all files below `rules_executorch-VERSION`."""
    tar = _git(root, "archive", "--format=tar", f"--prefix={NAME}-{version}/", commit)
    return gzip.compress(tar, compresslevel=9, mtime=0)


def main(argv: Sequence[str]) -> int:
    """Writes `rules_executorch-vVERSION.tar.gz`, `SHA256SUMS` and `notes.md`, or nothing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tag", required=True, help="vX.Y.Z")
    parser.add_argument("--out", required=True, type=Path, help="a folder; made")
    args = parser.parse_args(argv)
    root = Path(os.environ["BUILD_WORKSPACE_DIRECTORY"])
    out = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."), args.out)
    try:
        if not re.fullmatch(r"v\d+\.\d+\.\d+", args.tag):
            raise ReleaseError(f"{args.tag!r} is not a tag of the form v1.2.3.")
        version = args.tag[1:]
        commit = _commit(root, args.tag)
        check_version(root, commit, version)
        text = notes(_text(root, commit, "CHANGELOG.md"), version)
        packed = archive(root, commit, version)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    name = f"{NAME}-v{version}.tar.gz"
    out.mkdir(parents=True, exist_ok=True)
    (out / name).write_bytes(packed)
    (out / "SHA256SUMS").write_text(f"{hashlib.sha256(packed).hexdigest()}  {name}\n")
    (out / "notes.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
