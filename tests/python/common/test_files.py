"""Outputs are written whole or not at all."""

import errno

import pytest

from rules_executorch.common import files
from rules_executorch.common.errors import UserError


def test_json_is_canonical(tmp_path):
    path = tmp_path / "a.json"
    files.write_json(str(path), {"b": [1], "a": "é"})
    assert path.read_text() == '{\n  "a": "\\u00e9",\n  "b": [\n    1\n  ]\n}\n'


def test_a_failure_leaves_nothing(tmp_path):
    path = tmp_path / "out"
    with pytest.raises(RuntimeError), files.whole_file(str(path)) as part:
        with open(part, "w") as file:
            file.write("half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_a_sentence(tmp_path):
    path = tmp_path / "out"
    with pytest.raises(UserError, match="disk is full"), files.whole_file(str(path)):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_unreadable_json_names_the_file(tmp_path):
    path = tmp_path / "config.json"
    path.write_bytes(b'{"a": \xff')
    with pytest.raises(UserError, match="config.json"):
        files.read_json(str(path), "The configuration")


def test_a_missing_json_file_is_named(tmp_path):
    with pytest.raises(UserError, match="The signature is not there: .*gone.json"):
        files.read_json(str(tmp_path / "gone.json"), "The signature")
