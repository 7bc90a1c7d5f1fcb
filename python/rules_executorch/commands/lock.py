"""Write the lock file of a model: path, size and sha256 of every file at one revision.

The hub is asked for the commit that --revision means and for its files; the entry for --name in
the lock file is written or replaced. HF_ENDPOINT is the base URL of a mirror. A token comes from
HF_TOKEN, the netrc file, or what `hf auth login` stored, and is needed for gated and private
models only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path

from rules_executorch.common.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repo", required=True, help="the model's repository, owner/name")
    parser.add_argument("--revision", default="main", help="a commit, a tag or a branch")
    parser.add_argument(
        "--include", action="append", default=[], help="pattern of files to take (repeated)"
    )
    parser.add_argument(
        "--exclude", action="append", default=[], help="pattern of files to leave out (repeated)"
    )
    parser.add_argument("--lock", required=True, help="the lock file: a path, or //pkg:file")
    parser.add_argument("--name", help="name in huggingface.model; by default from the repository")


def lock_path(text: str) -> Path:
    """The lock file that an argument means.

    Args:
        text: a path, relative to where `bazel run` was called, or a label `//pkg:file` of the
            workspace where it was called.

    Raises:
        UserError: its folder does not exist, or it is a label outside of a workspace.
    """
    if text.startswith("//"):
        workspace = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
        package, _, name = text[2:].partition(":")
        if not workspace or not name:
            raise UserError(
                f"--lock {text} is not a label of a file in a workspace.",
                instead="Write //package:file under `bazel run`, or a path.",
            )
        path = Path(workspace, package, name)
    else:
        path = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."), text)
    if not path.parent.is_dir():
        raise UserError(
            f"The folder {path.parent} of the lock file does not exist.",
            instead="Make it, with a BUILD.bazel file in it, which may be empty.",
        )
    return path


def lock_label(path: Path) -> str:
    """The label of a lock file, as MODULE.bazel names it."""
    workspace = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", ".")).resolve()
    try:
        relative = path.resolve().relative_to(workspace)
    except ValueError:
        return f"//:{path.name}"
    package = relative.parent
    while package.parts and not any(
        (workspace / package / build).is_file() for build in ("BUILD.bazel", "BUILD")
    ):
        package = package.parent
    return f"//{package.as_posix() if package.parts else ''}:{relative.relative_to(package)}"


def _tag(name: str, args: argparse.Namespace, revision: str, label: str) -> str:
    """The lines for MODULE.bazel."""
    lines = [
        f"name = {json.dumps(name)},",
        f"repo = {json.dumps(args.repo)},",
        f"revision = {json.dumps(revision)},",
    ]
    for key in ("include", "exclude"):
        if getattr(args, key):
            lines.append(f"{key} = {json.dumps(sorted(set(getattr(args, key))))},")
    lines.append(f"lock = {json.dumps(label)},")
    body = "".join(f"    {line}\n" for line in lines)
    return f'huggingface.model(\n{body})\nuse_repo(huggingface, "{name}")'


def run(args: argparse.Namespace) -> int:
    from rules_executorch.hub import client, lockfile, patterns

    patterns.check(args.include + args.exclude)
    name = args.name or re.sub("[^a-z0-9]+", "_", args.repo.rpartition("/")[2].lower()).strip("_")
    if not re.fullmatch("[A-Za-z][A-Za-z0-9._-]*", name):
        raise UserError(
            f"--name {name} is not the name of a repository.", instead="Write a word of letters."
        )
    path = lock_path(args.lock)
    lockfile.read(str(path))
    endpoint = client.endpoint_from_environment()

    def say(line: str) -> None:
        print(line, flush=True)

    with client.Hub(endpoint, client.token_for(endpoint), say) as hub:
        revision = hub.resolve(args.repo, args.revision)
        if revision != args.revision:
            say(f"{args.revision} of {args.repo} is {revision}: this commit is locked.")
        model = hub.lock(args.repo, revision, args.include, args.exclude)
    changed = lockfile.update(str(path), name, model)
    say(
        f"{args.lock}: {name} has {len(model.files)} files, {model.size / 1e6:.1f} MB"
        f" ({'written' if changed else 'as before'}). In MODULE.bazel:\n"
    )
    say(_tag(name, args, revision, lock_label(path)))
    return 0
