"""pre-commit runs the linters in the versions of the lint test."""

from __future__ import annotations

import re

import lint

ROOT = lint.checkout()


def test_the_versions_are_those_of_the_lint_test() -> None:
    config = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    lock = (ROOT / "tools/toolchain/groups/dev_linux_x86_64_cp311.lock").read_text("utf-8")
    tools = (ROOT / "tools/closed_network/extension.bzl").read_text(encoding="utf-8")
    pinned = {
        "ruff": re.findall(r"^ruff==(\S+)", lock, re.MULTILINE),
        "typos": re.findall(r"^typos==(\S+)", lock, re.MULTILINE),
        "@bazel/buildifier": re.findall(r'tool = "buildifier",\s*version = "([^"]+)"', tools),
    }
    asked: dict[str, set[str]] = {}
    for name, version in re.findall(r'(@?[\w/-]+?)(?:==|@)([\d.]+)"?\]', config):
        asked.setdefault(name, set()).add(version)
    assert asked == {name: set(versions) for name, versions in pinned.items()}
