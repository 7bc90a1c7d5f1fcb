"""Archives of releases: fixed bytes, and what `verify` finds in ones that were changed."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import DESCRIPTION, Built

from rules_executorch.cli import main
from rules_executorch.common.errors import UserError
from rules_executorch.common.schema import to_json
from rules_executorch.lower.options import LowerOptions
from rules_executorch.records.archive import is_member_name, write_release
from rules_executorch.records.describe import Inputs, make_manifest
from rules_executorch.records.provenance import make_provenance
from rules_executorch.records.verify import verify_release


@pytest.fixture(scope="module")
def members(llama_xnnpack: Built, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A program with what belongs to it."""
    folder = tmp_path_factory.mktemp("members")
    checkpoint = llama_xnnpack.checkpoint
    weights = [checkpoint.weights_path]
    manifest = make_manifest(
        Inputs(checkpoint.config_path, llama_xnnpack.exported_path, weights, llama_xnnpack.path),
        llama_xnnpack.signature,
        DESCRIPTION,
        LowerOptions(backend="xnnpack"),
        llama_xnnpack.lowered,
        llama_xnnpack.info,
    )
    statement = make_provenance("tiny", "//:tiny", "urn:test", manifest, None, [])
    sbom = {"metadata": {"component": {"hashes": [{"content": manifest.program.sha256}]}}}
    texts = {
        "manifest": to_json(manifest),
        "provenance": statement,
        "sbom.cdx": sbom,
        "tokenizer": {},
    }
    found = {"tiny/model.pte": llama_xnnpack.path}
    for name, value in texts.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps(value))
        found[f"tiny/{path.name}"] = str(path)
    return found


def released(folder: Path, members: dict[str, str]) -> Path:
    path = folder / "assistant.tar"
    write_release(str(path), "assistant", members)
    return path


def faults(archive: Path) -> list[str]:
    scratch = archive.parent / f"scratch{len(list(archive.parent.iterdir()))}"
    scratch.mkdir()
    return verify_release(str(archive), str(scratch))


def rewritten(archive: Path, change: Callable[[tarfile.TarInfo, bytes], bytes | None]) -> Path:
    """A copy with members changed, or left out where `change` returns None."""
    path = archive.with_name("changed.tar")
    with tarfile.open(archive) as old, tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as new:
        for info in old:
            data = change(info, old.extractfile(info).read())
            if data is not None:
                info.size = len(data)
                new.addfile(info, io.BytesIO(data))
    return path


def with_member(archive: Path, info: tarfile.TarInfo, data: bytes = b"") -> Path:
    path = archive.with_name("more.tar")
    path.write_bytes(archive.read_bytes())
    with tarfile.open(path, "a") as file:
        info.size = len(data)
        file.addfile(info, io.BytesIO(data))
    return path


def test_the_bytes_depend_on_the_contents_alone(members: dict[str, str], tmp_path: Path) -> None:
    first = released(tmp_path, members).read_bytes()
    old = os.umask(0o077)
    try:
        for number, (member, path) in enumerate(members.items()):
            copy = tmp_path / f"copy{number}"
            copy.write_bytes(Path(path).read_bytes())
            os.utime(copy, (number, number))
            members = members | {member: str(copy)}
        other = tmp_path / "other"
        other.mkdir()
        backwards = dict(reversed(members.items()))
        assert released(other, backwards).read_bytes() == first
    finally:
        os.umask(old)
    with tarfile.open(fileobj=io.BytesIO(first)) as archive:
        infos = archive.getmembers()
    names = [info.name for info in infos]
    assert names == sorted(names)
    assert names[0] == "assistant/SHA256SUMS"
    assert {(i.mode, i.uid, i.gid, i.uname, i.gname, i.mtime) for i in infos} == {
        (0o644, 0, 0, "", "", 0)
    }


def test_a_sound_archive(members: dict[str, str], tmp_path: Path) -> None:
    assert faults(released(tmp_path, members)) == []


def test_sums_are_those_of_sha256sum(members: dict[str, str], tmp_path: Path) -> None:
    with tarfile.open(released(tmp_path, members)) as archive:
        sums = archive.extractfile("assistant/SHA256SUMS").read().decode()
    digest = hashlib.sha256(Path(members["tiny/model.pte"]).read_bytes()).hexdigest()
    assert f"{digest}  tiny/model.pte\n" in sums
    assert len(sums.splitlines()) == len(members)


def test_any_changed_byte_is_found(members: dict[str, str], tmp_path: Path) -> None:
    archive = released(tmp_path, members)
    data = archive.read_bytes()
    with tarfile.open(archive) as file:
        program = file.getmember("assistant/tiny/model.pte")
        tokenizer = file.getmember("assistant/tiny/tokenizer.json")
    # In files, in a header's time, in the padding after a file, and in the end of the archive.
    places = [program.offset_data + 5000, tokenizer.offset_data, tokenizer.offset + 140]
    places += [tokenizer.offset_data + tokenizer.size, len(data) - 1]
    for place in places:
        changed = bytearray(data)
        changed[place] ^= 1
        path = tmp_path / "changed.tar"
        path.write_bytes(changed)
        try:
            assert faults(path), place
        except UserError as error:
            assert "not a readable tar archive" in str(error)


def test_a_changed_file_is_named(members: dict[str, str], tmp_path: Path) -> None:
    changed = rewritten(
        released(tmp_path, members),
        lambda info, data: b"[]" if info.name.endswith("tokenizer.json") else data,
    )
    assert [fault.split(":")[0] for fault in faults(changed)] == ["tiny/tokenizer.json was changed"]


def test_a_missing_file_is_named(members: dict[str, str], tmp_path: Path) -> None:
    changed = rewritten(
        released(tmp_path, members),
        lambda info, data: None if info.name.endswith("tokenizer.json") else data,
    )
    assert faults(changed) == ["tiny/tokenizer.json is missing: SHA256SUMS lists it."]


def test_an_extra_file_is_named(members: dict[str, str], tmp_path: Path) -> None:
    more = with_member(released(tmp_path, members), tarfile.TarInfo("assistant/extra.so"), b"x")
    assert faults(more)[0] == (
        "extra.so does not belong to the release: SHA256SUMS does not list it."
    )


def test_another_program_under_right_sums_is_found(
    members: dict[str, str], gemma_portable: Built, tmp_path: Path
) -> None:
    archive = released(tmp_path, members | {"tiny/model.pte": gemma_portable.path})
    found = faults(archive)
    assert found[0].startswith("tiny/model.pte is not the program that manifest.json describes")
    assert any("does not have the methods that manifest.json says" in fault for fault in found)
    assert "tiny/sbom.cdx.json is about another program: it does not have its digest." in found
    assert any("provenance.json is about another program" in fault for fault in found)


def test_a_manifest_against_its_schema(members: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    manifest = json.loads(Path(members["tiny/manifest.json"]).read_text())
    del manifest["sizes"]
    path.write_text(json.dumps(manifest))
    found = faults(released(tmp_path, members | {"tiny/manifest.json": str(path)}))
    assert found == [
        "tiny/manifest.json is not valid at the top level: 'sizes' is a required property."
    ]


def test_missing_statements_are_named(members: dict[str, str], tmp_path: Path) -> None:
    fewer = {k: v for k, v in members.items() if "manifest" not in k}
    assert faults(released(tmp_path, fewer)) == ["tiny/manifest.json is missing."]


@pytest.mark.parametrize(
    "name", ["../outside", "/etc/outside", "assistant/../../outside", "outside", "a//b", "a/./b"]
)
def test_a_member_cannot_escape(members: dict[str, str], tmp_path: Path, name: str) -> None:
    more = with_member(released(tmp_path, members), tarfile.TarInfo(name), b"x")
    with pytest.raises(UserError, match="outside of its folder"):
        faults(more)
    assert not (tmp_path / "outside").exists()
    assert not is_member_name(name)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_only_regular_files(members: dict[str, str], tmp_path: Path, kind: bytes) -> None:
    info = tarfile.TarInfo("assistant/link")
    info.type, info.linkname = kind, "../../../etc/passwd"
    with pytest.raises(UserError, match="is not a regular file"):
        faults(with_member(released(tmp_path, members), info))


def test_a_member_twice(members: dict[str, str], tmp_path: Path) -> None:
    info = tarfile.TarInfo("assistant/tiny/tokenizer.json")
    with pytest.raises(UserError, match="twice"):
        faults(with_member(released(tmp_path, members), info, b"{}"))


def test_what_is_no_archive(tmp_path: Path) -> None:
    path = tmp_path / "release.tar"
    path.write_bytes(b"no archive" * 100)
    with pytest.raises(UserError, match="not a readable tar archive"):
        faults(path)


def test_commands(
    members: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "assistant.tar")
    adds = [word for member, path in members.items() for word in ("--add", member, path)]
    assert main(["release", "--name=assistant", *adds, f"--out={out}"]) == 0
    assert main(["verify", out]) == 0
    digest = hashlib.sha256(Path(out).read_bytes()).hexdigest()
    assert digest in capsys.readouterr().out
    assert main(["verify", out, f"--sha256={digest}"]) == 0
    assert main(["verify", out, f"--sha256={'0' * 64}"]) == 1
    assert "The archive has the sha256" in capsys.readouterr().out
    assert main(["verify", str(tmp_path / "none.tar")]) == 1
    adds += ["--add", "tiny/model.pte", members["tiny/manifest.json"]]
    assert main(["release", "--name=assistant", *adds, f"--out={out}"]) == 1
    assert "would be tiny/model.pte" in capsys.readouterr().err
