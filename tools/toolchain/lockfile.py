"""Reading a lock: pip's requirements format with `==` versions and hashes only."""

from __future__ import annotations

import dataclasses
import re

from errors import InstallError

_REQUIREMENT = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+)(?P<rest>(\s+--hash=\S+)+)$"
)


@dataclasses.dataclass(frozen=True)
class Requirement:
    """One pinned package.

    Attributes:
        name: the normalized name.
        version: the version with its local part, such as `2.13.0+cpu`.
        hashes: the accepted archives, each `sha256:HEX`.
    """

    name: str
    version: str
    hashes: tuple[str, ...]

    def render(self) -> str:
        """The requirement as a lock's lines, with a final newline."""
        return (
            " \\\n    ".join(
                [f"{self.name}=={self.version}", *(f"--hash={digest}" for digest in self.hashes)]
            )
            + "\n"
        )


def normalize(name: str) -> str:
    """The name as the packaging specifications compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse(text: str, where: str) -> list[Requirement]:
    """The requirements of a lock, in its order.

    Args:
        text: the lock.
        where: how messages name the file.

    Raises:
        InstallError: a line is not `name==version --hash=sha256:...`.
    """
    requirements = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = _REQUIREMENT.match(line)
        hashes = tuple(re.findall(r"--hash=(\S+)", line))
        if not match or not all(re.fullmatch(r"sha256:[0-9a-f]{64}", h) for h in hashes):
            raise InstallError(
                f"{where} has the line {line[:100]!r}, and a lock has only lines of the form "
                "`name==version --hash=sha256:...`. Regenerate it with "
                "`bazel run //tools/toolchain:lock`."
            )
        requirements.append(Requirement(normalize(match["name"]), match["version"], hashes))
    return requirements
