"""Differences of files that are no programs."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path

from rules_executorch.program.compare.data import changed_bytes
from rules_executorch.program.compare.files import compare_files


def compared(folder: Path, name: str, first: bytes, second: bytes) -> list[str]:
    paths = []
    for side, data in (("first", first), ("second", second)):
        path = folder / side / name
        path.parent.mkdir()
        path.write_bytes(data)
        paths.append(str(path))
    return compare_files(*paths)


def zipped(members: dict[str, bytes], year: int = 1980) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, data in members.items():
            file.writestr(zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0)), data)
    return out.getvalue()


def tarred(members: dict[str, bytes], time: int = 0) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as file:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(data), time
            file.addfile(info, io.BytesIO(data))
    return out.getvalue()


def test_json_by_key(tmp_path: Path) -> None:
    first = {"methods": {"forward": {"shape": [1, 2]}}, "old": 1}
    second = {"methods": {"forward": {"shape": [1, 3]}}, "new": 1}
    found = compared(tmp_path, "m.json", json.dumps(first).encode(), json.dumps(second).encode())
    assert found == [
        "methods.forward.shape[1] is 2 in the first and 3 in the second",
        "new is in the second only",
        "old is in the first only",
    ]


def test_json_that_only_looks_different(tmp_path: Path) -> None:
    assert compared(tmp_path, "m.json", b'{"a": 1}', b'{"a":1}') == [
        "line 1 is '{\"a\": 1}' in the first and '{\"a\":1}' in the second"
    ]


def test_members_of_an_exported_program(tmp_path: Path) -> None:
    first = {"p/model.json": b'{"graph": {"nodes": ["add"]}}', "p/byteorder": b"little"}
    second = {"p/model.json": b'{"graph": {"nodes": ["mul"]}}', "p/byteorder": b"little"}
    assert compared(tmp_path, "m.pt2", zipped(first), zipped(second)) == [
        'member p/model.json: graph.nodes[0] is "add" in the first and "mul" in the second'
    ]


def test_times_of_an_exported_program(tmp_path: Path) -> None:
    members = {"p/byteorder": b"little"}
    assert compared(tmp_path, "m.pt2", zipped(members), zipped(members, 1999)) == [
        "order, times or modes of the members of the archive"
    ]


def test_members_of_an_archive(tmp_path: Path) -> None:
    first = {"r/a": b"1\n", "r/b": b"2\n"}
    second = {"r/a": b"3\n", "r/c": b"2\n"}
    assert compared(tmp_path, "r.tar", tarred(first), tarred(second)) == [
        "member r/a: the value is 1 in the first and 3 in the second",
        "member r/b is in the first only",
        "member r/c is in the second only",
    ]


def test_times_of_an_archive(tmp_path: Path) -> None:
    assert compared(tmp_path, "r.tar", tarred({"a": b""}), tarred({"a": b""}, 5)) == [
        "order, times, owners or modes of the members of the archive"
    ]


def test_text_by_line(tmp_path: Path) -> None:
    assert compared(tmp_path, "r.md", b"# a\nb\n", b"# a\nc\n") == [
        "line 2 is 'b' in the first and 'c' in the second"
    ]


def test_anything_else_by_byte(tmp_path: Path) -> None:
    assert compared(tmp_path, "r.bin", b"\0\1\2", b"\0\1\3") == [
        "1 of 3 bytes differs, the first at byte 2"
    ]


def test_elements(tmp_path: Path) -> None:
    first = bytes(range(24))
    second = bytes([*range(8), 99, *range(9, 24)])
    assert changed_bytes(first, second, 4) == "1 of 6 elements differs, the first at element 2"
    assert changed_bytes(first, first[:-1], 4) == "24 bytes in the first and 23 in the second"
    assert changed_bytes(b"\0" * 9, b"\0" * 8 + b"\1", 4) == "only the padding after its 2 elements"


def test_equal_files(tmp_path: Path) -> None:
    assert compared(tmp_path, "r.pte", b"no program", b"no program") == []
