"""Where two files that should be the same differ, by the kind of file."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rules_executorch.common.errors import UserError
from rules_executorch.program.compare.data import changed_bytes, few_lines

_MAX_TEXT_BYTES = 64_000_000


def sha256(path: str) -> str:
    """Digest of a file, 64 hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def compare_files(first: str, second: str) -> list[str]:
    """Compares two files.

    Args:
        first, second: paths; the first one's extension says what they are.

    Returns:
        One clause per difference, without a full stop; empty if and only if the files have the
        same bytes.
    """
    if os.path.getsize(first) == os.path.getsize(second) and sha256(first) == sha256(second):
        return []
    compare = _KINDS.get(os.path.splitext(first)[1], _compare_bytes)
    try:
        found = list(compare(first, second))
    except (UserError, ValueError, OSError, zipfile.BadZipFile, tarfile.TarError):
        # One of them is not what its name says, so only the bytes can be compared.
        found = []
    return found or list(_compare_bytes(first, second))


def _programs(first: str, second: str) -> Iterator[str]:
    from rules_executorch.program.compare.programs import compare_programs

    yield from compare_programs(first, second)


def _program_data(first: str, second: str) -> Iterator[str]:
    from rules_executorch.program.compare.data_files import compare_data

    yield from compare_data(first, second)


def _compare_bytes(first: str, second: str) -> Iterator[str]:
    contents = []
    for path in (first, second):
        with open(path, "rb") as file:
            contents.append(file.read())
    yield from _data("", *contents)


def _data(what: str, first: bytes, second: bytes) -> Iterator[str]:
    """Compares text by line, anything else by byte."""
    prefix = f"{what}: " if what else ""
    try:
        if max(len(first), len(second)) > _MAX_TEXT_BYTES or b"\0" in first or b"\0" in second:
            raise ValueError
        lines, others = first.decode().splitlines(), second.decode().splitlines()
    except ValueError:
        yield f"{prefix}{changed_bytes(first, second)}"
        return
    for number, (line, other) in enumerate(zip(lines, others, strict=False), start=1):
        if line != other:
            shown = f"{line[:200]!r} in the first and {other[:200]!r} in the second"
            yield f"{prefix}line {number} is {shown}"
            return
    yield f"{prefix}{len(lines):,} lines in the first and {len(others):,} in the second"


def _json(first: str, second: str) -> Iterator[str]:
    values = []
    for path in (first, second):
        with open(path, encoding="utf-8") as file:
            values.append(json.load(file))
    yield from few_lines(list(_json_values("", *values)), "values")


def _json_values(path: str, first: Any, second: Any) -> Iterator[str]:
    if isinstance(first, dict) and isinstance(second, dict):
        for key in sorted(first.keys() | second.keys()):
            where = f"{path}.{key}" if path else key
            if key not in first or key not in second:
                yield f"{where} is in the {'first' if key in first else 'second'} only"
            else:
                yield from _json_values(where, first[key], second[key])
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for index, pair in enumerate(zip(first, second, strict=True)):
            yield from _json_values(f"{path}[{index}]", *pair)
    elif first != second:
        shown = [json.dumps(value)[:120] for value in (first, second)]
        yield f"{path or 'the value'} is {shown[0]} in the first and {shown[1]} in the second"


def _members(first: Mapping[str, bytes], second: Mapping[str, bytes]) -> Iterator[str]:
    for name in sorted(first.keys() | second.keys()):
        if name not in first or name not in second:
            yield f"member {name} is in the {'first' if name in first else 'second'} only"
        elif first[name] != second[name]:
            what = f"member {name}"
            try:
                pair = json.loads(first[name]), json.loads(second[name])
            except ValueError:
                yield from _data(what, first[name], second[name])
            else:
                values = few_lines(list(_json_values("", *pair)), "values")
                yield from (f"{what}: {value}" for value in values)
                if not values:
                    yield f"{what}: the same values, written differently"


def _zip(first: str, second: str) -> Iterator[str]:
    contents = []
    for path in (first, second):
        with zipfile.ZipFile(path) as file:
            contents.append({name: file.read(name) for name in file.namelist()})
    found = list(_members(*contents))
    yield from found or ["order, times or modes of the members of the archive"]


def _tar(first: str, second: str) -> Iterator[str]:
    contents = []
    for path in (first, second):
        with tarfile.open(path) as file:
            members: dict[str, bytes] = {}
            for member in file:
                opened = file.extractfile(member)
                members[member.name] = opened.read() if opened else b""
            contents.append(members)
    found = list(_members(*contents))
    yield from found or ["order, times, owners or modes of the members of the archive"]


_KINDS: dict[str, Callable[[str, str], Iterator[str]]] = {
    ".json": _json,
    ".pt2": _zip,
    ".pte": _programs,
    ".ptd": _program_data,
    ".tar": _tar,
    ".zip": _zip,
}
