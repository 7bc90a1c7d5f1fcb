"""Readers of what is made: exported programs, programs, releases, and the lock file of models."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fuzzing import ANYTHING, NUMBERS, bounded, damaged, read_or_refused
from hypothesis import given
from hypothesis import strategies as st

from rules_executorch.action.quiet import quiet_libraries
from rules_executorch.common.errors import UserError
from rules_executorch.hub import lockfile

quiet_libraries()

import torch  # noqa: E402
from executorch.exir import to_edge_transform_and_lower  # noqa: E402

from rules_executorch.export.pt2 import read_program, write_program  # noqa: E402
from rules_executorch.program.inspect import inspect_program  # noqa: E402
from rules_executorch.program.pte import open_program  # noqa: E402
from rules_executorch.records.archive import write_release  # noqa: E402
from rules_executorch.records.verify import verify_release  # noqa: E402


class Small(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) + self.seen.sum()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def exported(folder: Path) -> Path:
    path = folder / "sound.pt2"
    program = torch.export.export(Small().eval(), (torch.zeros(2, 4),), strict=True)
    write_program(program, str(path))
    return path


@pytest.fixture(scope="module")
def program(folder: Path) -> bytes:
    path = folder / "sound.pte"
    made = torch.export.export(Small().eval(), (torch.zeros(2, 4),), strict=True)
    with path.open("wb") as file:
        to_edge_transform_and_lower(made).to_executorch().write_to_file(file)
    read_program_or_refuse(path)
    return path.read_bytes()


def read_program_or_refuse(path: Path) -> None:
    with read_or_refused(megabytes=32):
        inspect_program(str(path))
    with read_or_refused(megabytes=32), open_program(str(path)) as opened:
        opened.constants()


@bounded(60)
@given(data=st.data())
def test_damaged_exported_programs(folder: Path, exported: Path, data: st.DataObject) -> None:
    path = folder / "damaged.pt2"
    path.write_bytes(data.draw(damaged(exported.read_bytes())))
    with read_or_refused(megabytes=64):
        read_program(str(path))


def with_members(sound: Path, path: Path, change: Callable[[str, bytes], bytes | None]) -> None:
    """A copy of a zip with right checksums and changed members."""
    with zipfile.ZipFile(sound) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            data = change(name, old.read(name))
            if data is not None:
                new.writestr(name, data)


PATHS = ["../../etc/passwd", "/etc/passwd", "weight_0", ""]


@bounded(80)
@given(
    member=st.integers(0, 12),
    place=st.lists(st.integers(0, 40), min_size=1, max_size=6),
    value=st.one_of(ANYTHING, NUMBERS, st.sampled_from(PATHS)),
)
def test_odd_members_of_exported_programs(
    folder: Path, exported: Path, member: int, place: list[int], value: Any
) -> None:
    """Right zips whose JSON has one other value somewhere, such as a size of 2**60."""
    names = zipfile.ZipFile(exported).namelist()
    chosen = names[member % len(names)]

    def change(name: str, data: bytes) -> bytes | None:
        if name != chosen:
            return data
        try:
            root = json.loads(data)
        except ValueError:
            return None
        replace(root, place, value)
        return json.dumps(root).encode()

    path = folder / "odd.pt2"
    with_members(exported, path, change)
    with read_or_refused(megabytes=64):
        read_program(str(path))


def replace(root: Any, place: list[int], value: Any) -> None:
    """Puts a value at some place of a JSON value."""
    for index, number in enumerate(place):
        if not isinstance(root, dict | list) or not root:
            return
        key = sorted(root)[number % len(root)] if isinstance(root, dict) else number % len(root)
        if index + 1 == len(place) or not isinstance(root[key], dict | list) or not root[key]:
            root[key] = value
            return
        root = root[key]


@bounded(100)
@given(data=st.data())
def test_damaged_programs(folder: Path, program: bytes, data: st.DataObject) -> None:
    path = folder / "damaged.pte"
    path.write_bytes(data.draw(damaged(program)))
    read_program_or_refuse(path)


LOCK = {
    "schema_version": 1,
    "models": {
        "m": {
            "repo": "o/m",
            "revision": "0" * 40,
            "include": ["*"],
            "exclude": [],
            "files": {"config.json": {"size": 1, "sha256": "0" * 64, "lfs": False}},
        }
    },
}


@bounded(150)
@given(place=st.lists(st.integers(0, 5), min_size=1, max_size=6), value=ANYTHING)
def test_odd_lock_files(folder: Path, place: list[int], value: Any) -> None:
    path = folder / "lock.json"
    root = json.loads(json.dumps(LOCK))
    replace(root, place, value)
    path.write_text(json.dumps(root))
    with read_or_refused(megabytes=16):
        lockfile.read(str(path))


@bounded(150)
@given(
    path=st.one_of(
        st.text(max_size=12), st.lists(st.sampled_from(["..", ".", "", "a", "/"])).map("/".join)
    )
)
def test_paths_of_lock_files(path: str) -> None:
    try:
        lockfile.check_path(path)
    except UserError:
        return
    assert not path.startswith("/")
    assert not {"", ".", ".."} & set(path.split("/"))
    assert path.isprintable()


@pytest.fixture(scope="module")
def release(folder: Path, program: bytes) -> bytes:
    member = folder / "m.json"
    member.write_text("{}")
    archive = folder / "sound.tar"
    members = {"p/model.pte": str(folder / "sound.pte"), "p/manifest.json": str(member)}
    write_release(str(archive), "r", members)
    return archive.read_bytes()


@bounded(60)
@given(data=st.data())
def test_damaged_releases(tmp_path_factory, release: bytes, data: st.DataObject) -> None:
    root = tmp_path_factory.mktemp("release")
    changed = data.draw(damaged(release))
    (root / "r.tar").write_bytes(changed)
    (root / "inside" / "scratch").mkdir(parents=True)
    found: list[str] = ["refused"]
    with read_or_refused(megabytes=32):
        found = verify_release(str(root / "r.tar"), str(root / "inside" / "scratch"))
    # The manifest of this release is none, which is one fault of each.
    assert found != sound_faults(root, release) or changed == release
    assert {path.name for path in root.iterdir()} == {"r.tar", "inside", "sound"}
    assert [path.name for path in (root / "inside").iterdir()] == ["scratch"]


def sound_faults(root: Path, release: bytes) -> list[str]:
    folder = root / "sound"
    folder.mkdir()
    (folder / "r.tar").write_bytes(release)
    (folder / "scratch").mkdir()
    return verify_release(str(folder / "r.tar"), str(folder / "scratch"))


@bounded(80)
@given(
    names=st.lists(
        st.one_of(
            st.text(min_size=1, max_size=8).filter(lambda name: "\0" not in name),
            st.sampled_from(["r/a", "../a", "/a", "r/../../a", "r/p/model.pte", "r", "r/a/b"]),
        ),
        max_size=4,
    ),
    kind=st.sampled_from([b"0", b"0", b"0", b"1", b"2", b"3", b"5", b"6", b"S", b"x", b"L"]),
)
def test_odd_releases(tmp_path_factory, names: list[str], kind: bytes) -> None:
    root = tmp_path_factory.mktemp("odd")
    with tarfile.open(root / "r.tar", "w") as file:
        for name in names:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "../../a"
            try:
                file.addfile(info, io.BytesIO(b""))
            except UnicodeEncodeError:
                return
    (root / "inside" / "scratch").mkdir(parents=True)
    with read_or_refused(megabytes=32):
        assert verify_release(str(root / "r.tar"), str(root / "inside" / "scratch"))
    assert {path.name for path in root.iterdir()} == {"r.tar", "inside"}
    assert [path.name for path in (root / "inside").iterdir()] == ["scratch"]
