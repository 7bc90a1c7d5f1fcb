"""Checks an archive of `executorch_release`; needs nothing but the archive, and covers every byte.

Files are compared with SHA256SUMS, programs with their manifests, and the archive with the bytes
that its members would be written as, so that nothing can hide in headers or padding.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tarfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from rules_executorch.common import schema
from rules_executorch.common.errors import UserError
from rules_executorch.program.compare.files import sha256
from rules_executorch.records.archive import SUMS, is_member_name, write_archive
from rules_executorch.records.manifest import DataEntry, Manifest

_LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")
_MAX_MEMBERS = 100_000
_ANEW = "Get the archive again from where it was published, and compare the digest given there."


def verify_release(archive: str, scratch: str) -> list[str]:
    """Checks an archive.

    Args:
        archive: the `.tar`.
        scratch: an empty folder with room for its contents.

    Returns:
        Sentences, one per fault; empty for a sound archive.

    Raises:
        UserError: it is not such an archive, or a member would be written outside of `scratch`.
    """
    root = _unpack(archive, Path(scratch))
    found = [*_sums(root), *_form(archive, root)]
    programs = sorted(root.glob("*/model.pte"))
    if not programs:
        found.append(f"{root.name} has no program NAME/model.pte.")
    for program in programs:
        found += [f"{program.parent.name}/{fault}" for fault in _program(program)]
    return found


def _unpack(archive: str, scratch: Path) -> Path:
    """Writes the members below `scratch` and returns the one folder they are in."""
    size = os.path.getsize(archive)
    if size > shutil.disk_usage(scratch).free:
        raise UserError(
            f"{archive} has {size:,} bytes, and {scratch} has not as much room.",
            instead="Set TMPDIR to a folder on a larger disk.",
        )
    names: set[str] = set()
    try:
        # A stream: each header is checked before its member is written.
        with tarfile.open(archive, "r|") as stream:
            for member in stream:
                _check_member(member, names)
                target = scratch / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                source = stream.extractfile(member)
                assert source is not None
                with open(target, "xb") as file:
                    shutil.copyfileobj(source, file, 1 << 20)
    except (tarfile.TarError, EOFError, FileExistsError, NotADirectoryError, ValueError) as error:
        raise UserError(
            f"{archive} is not a readable tar archive: {error or type(error).__name__}.",
            instead=_ANEW,
        ) from error
    folders = {name.split("/")[0] for name in names}
    if len(folders) != 1:
        raise UserError(
            f"{archive} has {len(folders)} folders at its top, and a release has one.",
            instead=_ANEW,
        )
    return scratch / folders.pop()


def _check_member(member: tarfile.TarInfo, names: set[str]) -> None:
    shown = repr(member.name[:200])
    if not member.isreg() or member.sparse is not None:
        raise UserError(
            f"The member {shown} of the archive is not a regular file; a link or a device could"
            " reach outside of the folder that it is unpacked in.",
            instead=_ANEW,
        )
    if not is_member_name(member.name):
        raise UserError(
            f"The member {shown} of the archive would be written outside of its folder.",
            instead=_ANEW,
        )
    if member.name in names:
        raise UserError(f"The member {shown} is in the archive twice.", instead=_ANEW)
    names.add(member.name)
    if len(names) > _MAX_MEMBERS:
        raise UserError(f"The archive has more than {_MAX_MEMBERS:,} members.", instead=_ANEW)


def _sums(root: Path) -> Iterator[str]:
    """Files against SHA256SUMS, both ways."""
    if not (root / SUMS).is_file():
        yield f"{SUMS} is missing."
        return
    stated: dict[str, str] = {}
    for number, line in enumerate((root / SUMS).read_text(errors="replace").splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match and match[2] not in stated:
            stated[match[2]] = match[1]
        else:
            yield f"Line {number} of {SUMS} is not a digest and the name of one more file."
    present = {
        str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and path.name
    } - {SUMS}
    for name in sorted(stated.keys() - present):
        yield f"{name} is missing: {SUMS} lists it."
    for name in sorted(present - stated.keys()):
        yield f"{name} does not belong to the release: {SUMS} does not list it."
    for name in sorted(present & stated.keys()):
        digest = sha256(str(root / name))
        if digest != stated[name]:
            yield f"{name} was changed: its sha256 is {digest}, and {SUMS} has {stated[name]}."


class _Digest:
    """A file that keeps the digest of what is written to it."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        return len(data)


def _form(archive: str, root: Path) -> Iterator[str]:
    """The archive against what its members are written as."""
    out = _Digest()
    members = {
        f"{root.name}/{path.relative_to(root)}": str(path)
        for path in root.rglob("*")
        if path.is_file()
    }
    write_archive(out, members, {})  # type: ignore[arg-type]
    if out.sha256.hexdigest() != sha256(archive):
        yield (
            "The archive is not in the form of executorch_release: order, times, owners, modes or"
            " padding were changed, or something follows its end."
        )


def _program(program: Path) -> Iterator[str]:
    folder = program.parent
    value = _json(folder / "manifest.json")
    if isinstance(value, str):
        yield value
        return
    try:
        manifest = schema.parse(Manifest, value, "manifest.json", instead=_ANEW)
    except UserError as error:
        yield error.what
        return
    digest = sha256(str(program))
    if manifest.program.sha256 != digest:
        yield "model.pte is not the program that manifest.json describes: the digests differ."
    yield from _inspected(program, manifest)
    data = yield from _data(program, manifest.data)
    yield from _subjects(folder, digest)
    if data and data not in _digests(_json(folder / "provenance.json"), "sha256"):
        yield "provenance.json is about other data: no subject of it has the digest of model.ptd."


def _json(path: Path) -> Any:
    """A JSON object, or what is wrong with it."""
    if not path.is_file():
        return f"{path.name} is missing."
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        return f"{path.name} is not readable as JSON: {error}."
    return value if isinstance(value, dict) else f"{path.name} is not a JSON object."


def _inspected(program: Path, manifest: Manifest) -> Iterator[str]:
    from rules_executorch.program.inspect import inspect_program

    try:
        real = inspect_program(str(program))
    except UserError as error:
        yield f"model.pte: {error.what}"
        return
    same = {
        "constant methods": real.constants == manifest.constant_methods,
        "sizes": real.sizes == manifest.sizes,
        "methods": real.methods == {name: m.info for name, m in manifest.methods.items()},
    }
    for what, right in same.items():
        if not right:
            yield f"model.pte does not have the {what} that manifest.json says."


def _data(program: Path, stated: DataEntry | None) -> Generator[str, None, str | None]:
    """The data file against the manifest and the program; returns its digest if there is one."""
    from rules_executorch.program.ptd import check_data, inspect_data

    path = program.with_suffix(".ptd")
    if stated is None:
        if path.is_file():
            yield "model.ptd is there, and manifest.json says nothing of it."
        return None
    if not path.is_file():
        yield "model.ptd is missing: manifest.json says that the program's weights are in it."
        return None
    digest = sha256(str(path))
    if stated.sha256 != digest:
        yield "model.ptd is not the data that manifest.json describes: the digests differ."
    try:
        if inspect_data(str(path)) != stated.tensors:
            yield "model.ptd does not have the tensors that manifest.json says."
        check_data(str(program), str(path))
    except UserError as error:
        yield f"model.ptd: {error.what}"
    return digest


def _subjects(folder: Path, digest: str) -> Iterator[str]:
    """SBOM and provenance are about this program."""
    sbom = folder / "sbom.cdx.json"
    if sbom.is_file():
        value = _json(sbom)
        if isinstance(value, str):
            yield value
        elif digest not in _digests(value.get("metadata"), "content"):
            yield "sbom.cdx.json is about another program: it does not have its digest."
    provenance = _json(folder / "provenance.json")
    if isinstance(provenance, str):
        yield provenance
    elif digest not in _digests(provenance.get("subject"), "sha256"):
        yield "provenance.json is about another program: its subject has another digest."


def _digests(value: Any, key: str) -> set[str]:
    """Strings under a key, at whatever depth."""
    if isinstance(value, list):
        return {digest for item in value for digest in _digests(item, key)}
    if not isinstance(value, dict):
        return set()
    own = {value[key]} if isinstance(value.get(key), str) else set()
    return own | {digest for item in value.values() for digest in _digests(item, key)}
