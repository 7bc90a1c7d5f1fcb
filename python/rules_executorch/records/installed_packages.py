"""The Python packages that compiled a program, from the marker of the toolchain."""

from __future__ import annotations

import dataclasses
import importlib.metadata
from collections.abc import Mapping
from typing import Any

from rules_executorch.common.files import read_json


@dataclasses.dataclass(frozen=True)
class Package:
    """An installed distribution.

    Attributes:
        name, version: as pip has them, with the local part, `2.13.0+cpu`.
        content: digest of its installed files, `sha256:` and 64 digits; None where the toolchain
            does not say.
        license: SPDX expression of its metadata, or None.
    """

    name: str
    version: str
    content: str | None = None
    license: str | None = None

    @property
    def package_url(self) -> str:
        """`pkg:pypi/NAME@VERSION`."""
        return f"pkg:pypi/{self.name}@{self.version.replace('+', '%2B')}"


def compile_packages(marker: str, versions: Mapping[str, str]) -> list[Package]:
    """The packages of the toolchain that made a program.

    Args:
        marker: path of the toolchain's marker. A toolchain of the user's own may have any file
            there; then only `versions` is used.
        versions: of the ruleset, which is no package, and of the main packages, from the manifest.

    Returns:
        Packages sorted by name; the topmost layer's version where two layers have one.
    """
    try:
        value = read_json(marker, "The marker of the toolchain")
        wheels = {
            wheel["name"]: Package(wheel["name"], wheel["version"], wheel["content"])
            for wheel in value["wheels"]
        }
    except (KeyError, TypeError):
        wheels = {}
    for name, version in versions.items():
        if name != "rules_executorch":
            wheels.setdefault(name, Package(name, version))
    return [
        dataclasses.replace(wheels[name], license=_license(wheels[name])) for name in sorted(wheels)
    ]


def _license(package: Package) -> str | None:
    """What the metadata of the package says, where this Python has the same version."""
    try:
        metadata: Any = importlib.metadata.metadata(package.name)
    except importlib.metadata.PackageNotFoundError:
        return None
    return metadata["License-Expression"] if metadata["Version"] == package.version else None
