"""What fuzzing found: inputs on which a reader allocated too much or failed without words."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

from rules_executorch.action.quiet import quiet_libraries
from rules_executorch.checkpoint import strict_json, tokenizer
from rules_executorch.checkpoint.config import load_config
from rules_executorch.checkpoint.model_card import ModelCard, read_card
from rules_executorch.common.errors import UserError

quiet_libraries()

from rules_executorch.export.pt2 import read_program  # noqa: E402


def test_a_bound_of_a_size_is_not_allocated(tmp_path: Path) -> None:
    """Reading at most 256 MB allocated as much for a file of two bytes."""
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    tracemalloc.start()
    try:
        strict_json.read_object(str(path), limit=256_000_000)
        tokenizer.chat_template({}, str(path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


def test_a_file_that_is_longer_than_its_bound_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"a": "b" * 100}))
    with pytest.raises(UserError, match="longer than 50 bytes"):
        strict_json.read_object(str(path), limit=50)


@pytest.mark.parametrize("value", ["!!timestamp x", "!!int x", "!!binary x", "2020-99-99"])
def test_tags_of_yaml_are_not_followed(tmp_path: Path, value: str) -> None:
    """`!!timestamp x` ended in an AttributeError of the YAML library."""
    path = tmp_path / "README.md"
    path.write_text(f"---\nlicense_name: {value}\ndatasets: a/b\n---\n")
    assert read_card(str(path)).datasets == ("a/b",)
    path.write_text("---\nlicense: [\n---\n")
    assert read_card(str(path)) == ModelCard()


@pytest.mark.parametrize("changes", [{"torch_dtype": []}, {"dtype": "float.x.y"}])
def test_a_config_that_transformers_stumbles_over(tmp_path: Path, changes: dict[str, Any]) -> None:
    """`torch_dtype: []` ended in an IndexError of transformers."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "llama"} | changes))
    with pytest.raises(UserError, match="transformers refuses"):
        load_config(str(path))


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"program/models/model.json": b""},
        {"program/models/model.json": b"[]"},
        {"program/models/model.json": b"1"},
        {"program/models/model.json": b"[" * 100_000},
    ],
)
def test_a_zip_that_is_no_exported_program(tmp_path: Path, members: dict[str, bytes]) -> None:
    """Right zips with other contents ended in whatever torch's deserializer raised."""
    path = tmp_path / "program.pt2"
    with zipfile.ZipFile(path, "w") as file:
        for name, data in members.items():
            file.writestr(name, data)
    with pytest.raises(UserError, match="is not an exported program"):
        read_program(str(path))


def test_an_encrypted_zip_is_no_exported_program(tmp_path: Path) -> None:
    """The bit for encryption ended in a RuntimeError of zipfile."""
    path = tmp_path / "program.pt2"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("program/models/model.json", b"{}")
    data = bytearray(path.read_bytes())
    data[6] |= 1
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match="is not an exported program"):
        read_program(str(path))
