"""Shards and their index."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders import floats

from rules_executorch.checkpoint.sharded import few, open_shards
from rules_executorch.checkpoint.weights import open_weights
from rules_executorch.common.errors import UserError


def index(folder: Path, weight_map: object) -> str:
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return str(path)


@pytest.fixture
def shards(tmp_path: Path) -> list[str]:
    return [
        str(floats(tmp_path / "one.safetensors", a=(2,), b=(3,))),
        str(floats(tmp_path / "two.safetensors", c=(4,))),
    ]


WHOLE = {"a": "one.safetensors", "b": "one.safetensors", "c": "two.safetensors"}


def test_opens_all(tmp_path: Path, shards: list[str]) -> None:
    weights = open_weights([*shards, index(tmp_path, WHOLE)])
    assert weights.names() == ["a", "b", "c"]
    assert weights.shape("c") == (4,)
    assert weights.source("c") == shards[1]


def test_shards_may_lie_in_other_folders(tmp_path: Path, shards: list[str]) -> None:
    (tmp_path / "elsewhere").mkdir()
    assert set(open_shards(index(tmp_path / "elsewhere", WHOLE), shards)) == {"a", "b", "c"}


def test_a_missing_shard_is_named(tmp_path: Path, shards: list[str]) -> None:
    with pytest.raises(UserError, match="1 of them is not given: two.safetensors") as caught:
        open_shards(index(tmp_path, WHOLE), shards[:1])
    assert "srcs" in (caught.value.instead or "")


def test_a_shard_that_is_not_named_is_passed_over(tmp_path: Path, shards: list[str]) -> None:
    only_one = {"a": "one.safetensors", "b": "one.safetensors"}
    assert set(open_shards(index(tmp_path, only_one), shards)) == {"a", "b"}


def test_a_tensor_that_its_shard_lacks(tmp_path: Path, shards: list[str]) -> None:
    with pytest.raises(UserError, match="one.safetensors lacks 1 tensors.*: z"):
        open_shards(index(tmp_path, {**WHOLE, "z": "one.safetensors"}), shards)


def test_a_tensor_that_the_index_does_not_know(tmp_path: Path, shards: list[str]) -> None:
    less = {"a": "one.safetensors", "c": "two.safetensors"}
    with pytest.raises(UserError, match="one.safetensors holds 1 tensors.*: b"):
        open_shards(index(tmp_path, less), shards)


def test_a_tensor_in_another_shard_than_named(tmp_path: Path, shards: list[str]) -> None:
    swapped = {**WHOLE, "a": "two.safetensors"}
    with pytest.raises(UserError, match="one.safetensors holds 1 tensors.*: a"):
        open_shards(index(tmp_path, swapped), shards)


def test_two_shards_of_one_name(tmp_path: Path, shards: list[str]) -> None:
    (tmp_path / "again").mkdir()
    again = floats(tmp_path / "again" / "one.safetensors", a=(2,), b=(3,))
    with pytest.raises(UserError, match="Two files are called one.safetensors"):
        open_shards(index(tmp_path, WHOLE), [*shards, str(again)])


@pytest.mark.parametrize(
    ("weight_map", "words"),
    [
        (None, "no `weight_map`"),
        ({}, "no `weight_map`"),
        (["a"], "no `weight_map`"),
        ({"a": "../one.safetensors"}, "not the name of a file beside it"),
        ({"a": "/etc/one.safetensors"}, "not the name of a file beside it"),
        ({"a": 3}, "not the name of a file beside it"),
        ({"a": ""}, "not the name of a file beside it"),
        ({"a": "pytorch_model.bin"}, "not a safetensors file"),
    ],
)
def test_refuses_an_index(
    tmp_path: Path, shards: list[str], weight_map: object, words: str
) -> None:
    with pytest.raises(UserError, match=words) as caught:
        open_shards(index(tmp_path, weight_map), shards)
    assert "index.json" in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"weight_map": NaN}', '{"a": 1, "a": 2}'])
def test_refuses_an_index_that_is_not_json(tmp_path: Path, shards: list[str], text: str) -> None:
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(text)
    with pytest.raises(UserError, match="model.safetensors.index.json"):
        open_shards(str(path), shards)


def test_few() -> None:
    assert few(["a"]) == "a"
    assert few(list("abcdef")) == "a, b, c and 3 more"
