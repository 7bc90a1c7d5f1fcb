"""Reading locks."""

from __future__ import annotations

import lockfile
import pytest
from errors import InstallError

_HASH = "sha256:" + "0" * 64


def test_parse_and_render_are_inverse() -> None:
    """A requirement keeps its local version and all hashes; names are normalized."""
    text = f"# comment\n\nRuamel_YAML==0.19.1 \\\n    --hash={_HASH} \\\n    --hash={_HASH}\n"
    (requirement,) = lockfile.parse(text + f"torch==2.13.0+cpu --hash={_HASH}\n", "a.lock")[:1]
    assert requirement == lockfile.Requirement("ruamel-yaml", "0.19.1", (_HASH, _HASH))
    assert lockfile.parse(requirement.render(), "a.lock") == [requirement]


@pytest.mark.parametrize(
    "line",
    [
        "torch==2.13.0",
        "torch>=2.13.0 --hash=" + _HASH,
        "torch==2.13.0 --hash=sha256:abc",
        "torch==2.13.0 --hash=md5:" + "0" * 32,
        "--index-url=https://example.org",
        "torch @ file:///somewhere.whl",
    ],
)
def test_refuses_what_is_not_pinned_by_hash(line: str) -> None:
    """No hash, another algorithm, a range, an option and an address are no lock."""
    with pytest.raises(InstallError, match=r"a\.lock .*bazel run //tools/toolchain:lock"):
        lockfile.parse(line, "a.lock")
