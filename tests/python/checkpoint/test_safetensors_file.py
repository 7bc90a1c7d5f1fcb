"""The header reader of safetensors, against files that are right, wrong and hostile."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
import torch
from builders import entry, safetensors
from safetensors.torch import load_file, save_file

from rules_executorch.checkpoint import safetensors_writer
from rules_executorch.checkpoint.safetensors_file import SafetensorsFile
from rules_executorch.common.errors import UserError

A = entry("F32", [2], 0, 8)

TENSORS = {
    "a": torch.arange(6, dtype=torch.float32).reshape(2, 3),
    "b": torch.arange(3, dtype=torch.bfloat16),
    "c": torch.tensor([True, False, True]),
    "d": torch.tensor(7, dtype=torch.int64),
    "empty": torch.empty(0, 4, dtype=torch.float16),
    "f8": torch.tensor([1.0, 2.0], dtype=torch.float8_e4m3fn),
}


def test_reads_what_the_library_writes(tmp_path: Path) -> None:
    path = str(tmp_path / "model.safetensors")
    save_file(TENSORS, path, metadata={"format": "pt"})
    file = SafetensorsFile(path)
    assert file.metadata == {"format": "pt"}
    assert set(file.entries) == set(TENSORS)
    for name, tensor in TENSORS.items():
        found = file.tensor(name)
        assert found.dtype == tensor.dtype
        assert found.shape == tensor.shape
        assert found.double().tolist() == tensor.double().tolist()


def test_the_library_reads_what_the_writer_writes(tmp_path: Path) -> None:
    path = str(tmp_path / "model.safetensors")
    safetensors_writer.write(path, TENSORS)
    found = load_file(path)
    assert set(found) == set(TENSORS)
    assert torch.equal(found["a"], TENSORS["a"])
    assert SafetensorsFile(path).entries["a"].begin % 8 == 0


def test_the_writer_does_not_see_the_order(tmp_path: Path) -> None:
    one, other = tmp_path / "one.safetensors", tmp_path / "other.safetensors"
    safetensors_writer.write(str(one), TENSORS)
    safetensors_writer.write(str(other), dict(reversed(TENSORS.items())))
    assert one.read_bytes() == other.read_bytes()


def test_tensors_are_views_that_never_write_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"a": torch.zeros(4)}, str(path))
    before = path.read_bytes()
    file = SafetensorsFile(str(path))
    first, second = file.tensor("a"), file.tensor("a")
    assert first.data_ptr() == second.data_ptr()
    first.fill_(1.0)
    assert path.read_bytes() == before
    del file
    assert second.sum() == 4.0


def test_unaligned_data_is_copied(tmp_path: Path) -> None:
    data = b"\x01" + torch.tensor([1.5, -2.0]).numpy().tobytes()
    header = {"x": entry("U8", [1], 0, 1), "y": entry("F32", [2], 1, 9)}
    file = SafetensorsFile(str(safetensors(tmp_path / "m.safetensors", header, data)))
    assert file.tensor("y").tolist() == [1.5, -2.0]
    assert file.tensor("y").data_ptr() % 4 == 0


REFUSED = {
    "header of 2^63 bytes": ({"a": A}, bytes(8), 2**63, "claims a header"),
    "header of 2^64-1 bytes": ({"a": A}, bytes(8), 2**64 - 1, "claims a header"),
    "header just over the bound": ({"a": A}, bytes(8), 100_000_001, "more than the 100,000,000"),
    "header longer than the file": ({"a": A}, bytes(8), 5000, "truncated"),
    "header of no bytes": ({"a": A}, bytes(8), 0, "not valid JSON"),
    "not JSON": (b"{]", b"", None, "not valid JSON"),
    "not UTF-8": (b'{"\xff": 1}', b"", None, "not UTF-8"),
    "NaN": (b'{"a": NaN}', b"", None, "NaN is not a value"),
    "deep nesting": (b"[" * 200_000, b"", None, "nested too deeply"),
    "a number of 9000 digits": (b'{"a": ' + b"1" * 9000 + b"}", b"", None, "not valid JSON"),
    "a list": (b"[]", b"", None, "not a JSON object"),
    "no tensor": ({}, b"", None, "holds no tensor"),
    "only metadata": ({"__metadata__": {"format": "pt"}}, b"", None, "holds no tensor"),
    "metadata of numbers": ({"__metadata__": {"x": 1}, "a": A}, bytes(8), None, "__metadata__"),
    "metadata that is a list": ({"__metadata__": [1], "a": A}, bytes(8), None, "__metadata__"),
    "a name twice": (
        b'{"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},'
        b' "a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}',
        bytes(1),
        None,
        "occurs twice",
    ),
    "an entry that is a number": ({"a": 1}, b"", None, "not an object"),
    "an unknown field": ({"a": {**A, "x": 1}}, bytes(8), None, "unknown field"),
    "an unknown dtype": ({"a": entry("F31", [2], 0, 8)}, bytes(8), None, "unknown dtype"),
    "a dtype that is a list": ({"a": {**A, "dtype": ["F32"]}}, bytes(8), None, "unknown dtype"),
    "no shape": ({"a": {"dtype": "F32", "data_offsets": [0, 8]}}, bytes(8), None, "shape"),
    "a negative size": ({"a": entry("F32", [-2], 0, 8)}, bytes(8), None, "shape"),
    "a size that is true": ({"a": {**A, "shape": [True]}}, bytes(4), None, "shape"),
    "a fractional size": ({"a": {**A, "shape": [2.0]}}, bytes(8), None, "shape"),
    "a size of 2^63": ({"a": entry("F32", [2**63], 0, 8)}, bytes(8), None, "shape"),
    "sizes whose product wraps": (
        {"a": entry("F32", [2**32, 2**32], 0, 0)},
        b"",
        None,
        "takes 0 bytes",
    ),
    "17 dimensions": ({"a": entry("F32", [1] * 17, 0, 4)}, bytes(4), None, "dimensions"),
    "a negative offset": ({"a": entry("F32", [2], -8, 0)}, bytes(8), None, "pair of offsets"),
    "three offsets": ({"a": {**A, "data_offsets": [0, 4, 8]}}, bytes(8), None, "pair of offsets"),
    "offsets backwards": ({"a": entry("F32", [2], 8, 0)}, bytes(8), None, "go backwards"),
    "an end beyond the file": ({"a": entry("F32", [4], 0, 16)}, bytes(8), None, "truncated"),
    "fewer bytes than the shape": ({"a": entry("F32", [3], 0, 8)}, bytes(8), None, "need 12"),
    "an overlap": (
        {"a": A, "b": entry("F32", [2], 4, 12)},
        bytes(12),
        None,
        "'a' and 'b' overlap",
    ),
    "the same bytes twice": ({"a": A, "b": A}, bytes(8), None, "overlap"),
    "a gap": ({"a": A, "b": entry("F32", [1], 12, 16)}, bytes(16), None, "belong to no tensor"),
    "a gap at the start": ({"a": entry("F32", [1], 4, 8)}, bytes(8), None, "belong to no tensor"),
    "bytes at the end": ({"a": A}, bytes(9), None, "the last 1 bytes belong to no tensor"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(tmp_path: Path, name: str) -> None:
    header, data, length, words = REFUSED[name]
    path = safetensors(tmp_path / "model.safetensors", header, data, length)
    with pytest.raises(UserError) as caught:
        SafetensorsFile(str(path))
    assert str(path) in str(caught.value)
    assert words in str(caught.value)
    assert caught.value.instead and "sha256" in caught.value.instead


@pytest.mark.parametrize("size", range(8))
def test_refuses_files_shorter_than_the_length(tmp_path: Path, size: int) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(bytes(size))
    with pytest.raises(UserError, match="empty" if size == 0 else f"has {size} bytes"):
        SafetensorsFile(str(path))


def test_names_a_git_lfs_pointer(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    with pytest.raises(UserError, match="Git LFS pointer"):
        SafetensorsFile(str(path))


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    whole = tmp_path / "whole.safetensors"
    save_file({"a": torch.zeros(3), "b": torch.zeros(2)}, str(whole))
    data, path = whole.read_bytes(), tmp_path / "cut.safetensors"
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(UserError):
            SafetensorsFile(str(path))


def test_every_flipped_header_byte_is_read_or_refused(tmp_path: Path) -> None:
    whole = tmp_path / "whole.safetensors"
    save_file({"a": torch.zeros(3), "b": torch.zeros(2, dtype=torch.int8)}, str(whole))
    data, path, refused = whole.read_bytes(), tmp_path / "flip.safetensors", 0
    for position in range(len(data) - 14):
        for bit in range(8):
            changed = bytearray(data)
            changed[position] ^= 1 << bit
            path.write_bytes(changed)
            try:
                file = SafetensorsFile(str(path))
            except UserError:
                refused += 1
            else:
                for name, tensor in file.entries.items():
                    assert file.tensor(name).numel() == tensor.num_elements
    assert refused > 500


def test_a_claimed_header_is_not_allocated(tmp_path: Path) -> None:
    path = safetensors(tmp_path / "m.safetensors", b"{}", b"", 99_999_999)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UserError):
        SafetensorsFile(str(path))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


@pytest.mark.parametrize("kind", ["missing", "folder"])
def test_refuses_what_is_no_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "model.safetensors"
    if kind == "folder":
        path.mkdir()
    with pytest.raises(UserError) as caught:
        SafetensorsFile(str(path))
    assert str(path) in str(caught.value)
