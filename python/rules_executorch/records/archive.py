"""A release: programs and what an app and an auditor need, in one reproducible archive.

The archive is an uncompressed tar of the pax format with regular files only, sorted by name, under
one folder; every file has mode 0644, owner 0 and the time 0. `SHA256SUMS`, in the form of
sha256sum, lists every other file.

    NAME/SHA256SUMS
    NAME/PROGRAM/model.pte, model.ptd, manifest.json, sbom.cdx.json, provenance.json, ...
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Mapping
from typing import IO

from rules_executorch.common.errors import UserError
from rules_executorch.common.files import whole_file
from rules_executorch.program.compare.files import sha256

SUMS = "SHA256SUMS"


def is_member_name(name: str) -> bool:
    """Whether a name is a relative path that stays below the folder it is unpacked in."""
    parts = name.split("/")
    return (
        len(parts) >= 2
        and not {"", ".", ".."} & set(parts)
        and all(character.isprintable() and character != "\\" for character in name)
    )


def write_release(path: str, name: str, members: Mapping[str, str]) -> None:
    """Writes an archive.

    Args:
        path: of the archive.
        name: of the release, its one folder.
        members: names below that folder to paths of files.

    Raises:
        UserError: two members would be one file, or a name leaves the folder.
    """
    sums = []
    for member in sorted(members):
        if not is_member_name(f"{name}/{member}") or member == SUMS:
            raise UserError(
                f"{member!r} cannot be the name of a file of the release {name!r}.",
                instead="Rename the target.",
            )
        sums.append(f"{sha256(members[member])}  {member}\n")
    with whole_file(path) as part, open(part, "wb") as out:
        contents = {f"{name}/{member}": source for member, source in members.items()}
        write_archive(out, contents, {f"{name}/{SUMS}": "".join(sums).encode()})


def write_archive(out: IO[bytes], files: Mapping[str, str], texts: Mapping[str, bytes]) -> None:
    """Writes members in their fixed form.

    Args:
        out: where to.
        files: names to paths.
        texts: names to contents.
    """
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for member in sorted(files.keys() | texts.keys()):
            info = tarfile.TarInfo(member)
            info.mode = 0o644
            if member in texts:
                info.size = len(texts[member])
                archive.addfile(info, io.BytesIO(texts[member]))
                continue
            info.size = os.path.getsize(files[member])
            with open(files[member], "rb") as file:
                archive.addfile(info, file)
