"""The marker: one small file that stands for an environment in the keys of actions.

Two machines on which the same wheels were installed have the same marker, wherever the
environment lies; two builds of one version (a CPU and a CUDA torch) never share one.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
from collections.abc import Sequence
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from errors import InstallError
from interpreter import Interpreter
from lockfile import normalize

SCHEMA_VERSION = 1

# Written by the installer, not by the wheel, or different from folder to folder.
_NOT_CONTENT = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}


def content_digest(dist_info: Path) -> str:
    """The digest of what a wheel put into site-packages.

    Taken over the rows of RECORD (path, hash, size), sorted. Rows that depend on the folder or on
    the installer are left out: scripts outside of site-packages, byte code, pip's own notes. A
    file that RECORD has no hash for is hashed here.

    Args:
        dist_info: the `NAME-VERSION.dist-info` folder.

    Returns:
        `sha256:` and 64 hexadecimal digits.

    Raises:
        InstallError: RECORD is missing, or a file that it lists is.
    """
    site_packages = dist_info.parent
    record = dist_info / "RECORD"
    try:
        rows = list(csv.reader(record.read_text(encoding="utf-8").splitlines()))
    except FileNotFoundError as error:
        raise InstallError(f"{dist_info.name} was installed without a RECORD.") from error
    content = []
    for path, digest, size in (row for row in rows if len(row) == 3):
        outside = path.startswith(("../", "/"))
        note = path.startswith(f"{dist_info.name}/") and path.split("/", 1)[1] in _NOT_CONTENT
        if outside or note or path.endswith(".pyc"):
            continue
        if not digest:
            try:
                data = (site_packages / path).read_bytes()
            except FileNotFoundError as error:
                raise InstallError(f"{dist_info.name} lists {path}, which is not there.") from error
            encoded = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
            digest, size = f"sha256={encoded.decode()}", str(len(data))
        content.append(f"{path}\0{digest}\0{size}\n")
    return "sha256:" + hashlib.sha256("".join(sorted(content)).encode()).hexdigest()


def wheels(site_packages: Path) -> list[dict[str, Any]]:
    """Every distribution that is really in `site_packages`, sorted by name.

    Each has `name`, `version` (with its local part, such as `2.13.0+cpu`), `tags` of the wheel,
    and `content`, the digest of its files.
    """
    found = []
    for dist_info in sorted(site_packages.glob("*.dist-info")):
        metadata = HeaderParser().parsestr(
            (dist_info / "METADATA").read_text(encoding="utf-8", errors="replace")
        )
        wheel = HeaderParser().parsestr((dist_info / "WHEEL").read_text(encoding="utf-8"))
        found.append(
            {
                "name": normalize(metadata["Name"]),
                "version": metadata["Version"],
                "tags": sorted(wheel.get_all("Tag") or []),
                "content": content_digest(dist_info),
            }
        )
    return sorted(found, key=lambda entry: entry["name"])


def create(
    interpreter: Interpreter, locks: Sequence[str], site_packages: Sequence[Path]
) -> dict[str, Any]:
    """The marker of an environment.

    Args:
        interpreter: the Python it runs on.
        locks: the texts of its locks, from the base to the top layer.
        site_packages: the folders of its layers, in the same order.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "python": interpreter.version,
        "os": interpreter.os,
        "arch": interpreter.arch,
        "locks": [hashlib.sha256(text.encode()).hexdigest() for text in locks],
        "wheels": [entry for folder in site_packages for entry in wheels(folder)],
    }


def render(marker: dict[str, Any]) -> str:
    """The marker's text: the same bytes for the same contents."""
    return json.dumps(marker, indent=1, sort_keys=True, ensure_ascii=True) + "\n"
