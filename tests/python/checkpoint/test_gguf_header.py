"""The header reader of GGUF, against files that are right, wrong and hostile."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import gguf
import gguf_models
import numpy as np
import pytest
from builders import Gguf

from rules_executorch.checkpoint.gguf.header import GgufFile
from rules_executorch.common.errors import UserError


def good() -> Gguf:
    """Two tensors of one float32 row each, aligned to 32 bytes."""
    file = Gguf().text("general.architecture", "llama")
    file.tensor("a", [8, 1], offset=0).tensor("b", [4], offset=32)
    file.data = bytes(32) + struct.pack("<4f", 1, 2, 3, 4)
    return file


def test_reads_by_hand(tmp_path: Path) -> None:
    file = GgufFile(str(good().write(tmp_path / "m.gguf")))
    assert file.metadata == {"general.architecture": "llama"}
    assert file.tensors["a"].shape == (1, 8)
    assert struct.unpack("<4f", file.data("b")) == (1, 2, 3, 4)


def test_reads_what_the_package_writes(tmp_path: Path) -> None:
    path = str(gguf_models.write(tmp_path / "m.gguf", kind="Q4_1"))
    file, reference = GgufFile(path), gguf.GGUFReader(path)
    assert set(file.metadata) == {k for k in reference.fields if not k.startswith("GGUF.")}
    for key, value in file.metadata.items():
        expected = reference.fields[key].contents()
        if isinstance(value, float):
            assert np.float32(value) == np.float32(expected)
        else:
            assert value == expected
    assert len(file.tensors) == len(reference.tensors)
    for tensor in reference.tensors:
        mine = file.tensors[tensor.name]
        assert mine.shape == tuple(reversed(tensor.shape.tolist()))
        assert bytes(file.data(tensor.name)) == tensor.data.tobytes()


def test_float32_keys_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = good()
    for name, value in (("x", 1e-5), ("y", 0.1), ("z", 10000.0), ("w", 1 / 3)):
        file.key(name, 6, struct.pack("<f", value))
    found = GgufFile(str(file.write(tmp_path / "m.gguf"))).metadata
    assert (found["x"], found["y"], found["z"]) == (1e-5, 0.1, 10000.0)
    assert np.float32(found["w"]) == np.float32(1 / 3)


def test_every_kind_of_value(tmp_path: Path) -> None:
    file = good()
    values = {0: ("B", 255), 1: ("b", -1), 2: ("H", 65535), 3: ("h", -2), 4: ("I", 2**32 - 1)}
    values |= {5: ("i", -3), 7: ("B", 1), 10: ("Q", 2**64 - 1), 11: ("q", -4), 12: ("d", 0.25)}
    for kind, (code, value) in values.items():
        file.key(f"v{kind}", kind, struct.pack(f"<{code}", value))
        packed = struct.pack(f"<IQ{code}{code}", kind, 2, value, value)
        file.key(f"a{kind}", 9, packed)
    found = GgufFile(str(file.write(tmp_path / "m.gguf"))).metadata
    for kind, (_, value) in values.items():
        assert found[f"v{kind}"] == value
        assert found[f"a{kind}"] == [value, value]
    assert found["v7"] is True


def change(**attributes: object) -> Callable[[Gguf], None]:
    def apply(file: Gguf) -> None:
        for name, value in attributes.items():
            setattr(file, name, value)

    return apply


def array(kind: int, count: int, data: bytes = b"") -> bytes:
    return struct.pack("<IQ", kind, count) + data


REFUSED: dict[str, tuple[Callable[[Gguf], object], str]] = {
    "another magic number": (change(magic=b"GGML"), "starts with b'GGML'"),
    "version 1": (change(version=1), "version is 1"),
    "big endian": (change(version=3 << 24), "version is 50331648"),
    "no tensor": (change(num_tensors=0), "claims 0 tensors"),
    "2^64-1 tensors": (change(num_tensors=2**64 - 1), "tensors"),
    "one tensor too many": (change(num_tensors=3), "the tensor '' claims 0"),
    "a million tensors": (change(num_tensors=1_000_000), "the tensor '' claims 0"),
    "2^64-1 keys": (change(num_keys=2**64 - 1), "keys, more than"),
    "one key too many": (change(num_keys=2), "tensor entry 0 claims"),
    "a key twice": (lambda f: f.text("x", "1").text("x", "2"), "'x' occurs twice"),
    "a value of an unknown type": (lambda f: f.key("x", 13, b""), "unknown value type 13"),
    "a string of 2^63 bytes": (
        lambda f: f.key("x", 8, Gguf.string("abc", 2**63)),
        "'x' claims 9,223,372,036,854,775,808 bytes",
    ),
    "a string beyond the file": (
        lambda f: f.key("x", 8, Gguf.string("abc", 1_000_000)),
        "ends inside of the key 'x'",
    ),
    "text that is not UTF-8": (lambda f: f.key("x", 8, Gguf.string(b"\xff")), "not UTF-8"),
    "an array of 2^60 items": (
        lambda f: f.key("x", 9, array(0, 2**60)),
        "'x' claims 1,152,921,504,606,846,976 items",
    ),
    "an array beyond the file": (lambda f: f.key("x", 9, array(4, 10_000_000)), "ends inside"),
    "strings beyond the file": (lambda f: f.key("x", 9, array(8, 10_000_000)), "ends inside"),
    "an array of arrays": (lambda f: f.key("x", 9, array(9, 1, array(0, 0))), "nested value type"),
    "a tensor twice": (lambda f: f.tensor("a", [8, 1]), "'a' occurs twice"),
    "no dimension": (lambda f: f.tensor("c", [], offset=64), "'c' claims 0 dimensions"),
    "2^32-1 dimensions": (
        lambda f: f.tensor("c", [1], offset=64, claim=2**32 - 1),
        "claims 4294967295 dimensions",
    ),
    "a size of 0": (lambda f: f.tensor("c", [0, 4], offset=64), "the dimensions .0, 4."),
    "sizes whose product wraps": (
        lambda f: f.tensor("c", [2**33, 2**33], offset=64),
        "the dimensions",
    ),
    "an unknown type": (lambda f: f.tensor("c", [4], 99, 64), "unknown ggml type 99"),
    "a row that is no whole block": (
        lambda f: f.tensor("c", [33], 8, 64),
        "33 elements, which blocks of 32 .Q8_0.",
    ),
    "an unaligned tensor": (lambda f: f.tensor("c", [4], offset=65), "not aligned to 32"),
    "an overlap": (lambda f: f.tensor("c", [4], offset=0), "overlap"),
    "a tensor beyond the file": (lambda f: f.tensor("c", [400], offset=64), "truncated"),
    "a gap": (lambda f: f.tensor("c", [4], offset=128), "belong to no tensor"),
    "an offset of 2^64-32": (lambda f: f.tensor("c", [4], offset=2**64 - 32), "belong to no"),
    "bytes at the end": (lambda f: setattr(f, "data", f.data + bytes(64)), "the last"),
    "an alignment of 0": (lambda f: f.number("general.alignment", 0), "alignment is 0"),
    "an alignment of 48": (lambda f: f.number("general.alignment", 48), "alignment is 48"),
    "an alignment that is text": (lambda f: f.text("general.alignment", "x"), "alignment is x"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(tmp_path: Path, name: str) -> None:
    alter, words = REFUSED[name]
    file = good()
    alter(file)
    path = file.write(tmp_path / "m.gguf")
    with pytest.raises(UserError, match=words) as caught:
        GgufFile(str(path))
    assert f"{path} is not a readable GGUF file" in caught.value.what
    assert "sha256" in (caught.value.instead or "")


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    data = good().write(tmp_path / "whole.gguf").read_bytes()
    path = tmp_path / "cut.gguf"
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(UserError):
            GgufFile(str(path))


def test_every_flipped_bit_is_read_or_refused(tmp_path: Path) -> None:
    data = good().write(tmp_path / "whole.gguf").read_bytes()
    path, refused = tmp_path / "flip.gguf", 0
    for position in range(len(data) - 48):
        for bit in range(8):
            changed = bytearray(data)
            changed[position] ^= 1 << bit
            path.write_bytes(changed)
            try:
                file = GgufFile(str(path))
            except UserError:
                refused += 1
            else:
                assert all(len(file.data(n)) == t.num_bytes for n, t in file.tensors.items())
    assert refused > 500
