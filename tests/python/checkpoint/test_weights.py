"""One view of the weights, and the search for a model's parameters in it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from builders import floats

from rules_executorch.checkpoint import safetensors_writer
from rules_executorch.checkpoint.stored_weights import Weights
from rules_executorch.checkpoint.weights import open_weights
from rules_executorch.common.errors import UserError

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
TIED = {HEAD: EMBEDDING}
MODEL = {EMBEDDING: (4, 2), HEAD: (4, 2), "model.norm.weight": (2,)}


def weights_of(folder: Path, tensors: dict[str, torch.Tensor]) -> Weights:
    path = str(folder / "model.safetensors")
    safetensors_writer.write(path, tensors)
    return open_weights([path])


def tensors() -> dict[str, torch.Tensor]:
    return {
        EMBEDDING: torch.arange(8.0).reshape(4, 2),
        HEAD: -torch.arange(8.0).reshape(4, 2),
        "model.norm.weight": torch.ones(2),
    }


def test_the_interface(tmp_path: Path) -> None:
    with weights_of(tmp_path, {"a": torch.ones(2, 3, dtype=torch.bfloat16)}) as weights:
        assert weights.names() == ["a"]
        assert weights.shape("a") == (2, 3)
        assert weights.dtype("a") == "bfloat16"
        assert weights.tensor("a").dtype == torch.bfloat16
        assert weights.tensor("a", torch.float32).dtype == torch.float32
        assert weights.source("a") == str(tmp_path / "model.safetensors")
        with pytest.raises(KeyError):
            weights.tensor("b")


def test_a_tensor_of_the_wanted_dtype_is_a_view(tmp_path: Path) -> None:
    weights = weights_of(tmp_path, {"a": torch.ones(2)})
    assert weights.tensor("a", torch.float32).data_ptr() == weights.tensor("a").data_ptr()


def test_tensors_outlive_the_weights(tmp_path: Path) -> None:
    with weights_of(tmp_path, {"a": torch.ones(5)}) as weights:
        value = weights.tensor("a")
    del weights
    assert value.sum() == 5


def test_released_pages_are_read_again(tmp_path: Path) -> None:
    weights = weights_of(tmp_path, {"a": torch.ones(1 << 16), "b": torch.ones(3)})
    for name in weights.names():
        weights.tensor(name).fill_(7)
        weights.release(name)
    # Only what lies within whole pages is given back, and with it what was written there.
    assert set(weights.tensor("a").tolist()) == {1, 7}
    assert weights.tensor("b").tolist() == [7, 7, 7]


def test_resolve_finds_all(tmp_path: Path) -> None:
    assert weights_of(tmp_path, tensors()).resolve(MODEL) == {name: name for name in MODEL}


def test_missing_tensors_are_counted_and_named(tmp_path: Path) -> None:
    weights = weights_of(tmp_path, tensors())
    more = {f"model.layers.{i}.w": (1,) for i in range(9)}
    with pytest.raises(UserError) as caught:
        weights.resolve(MODEL | more)
    assert "9 of the 12 tensors" in caught.value.what
    assert "model.layers.0.w, model.layers.1.w, model.layers.2.w and 6 more" in caught.value.what
    assert "model.safetensors" in caught.value.what


def test_tensors_that_nobody_wants_are_left(tmp_path: Path) -> None:
    more = {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(1)}
    assert set(weights_of(tmp_path, tensors() | more).resolve(MODEL)) == set(MODEL)


def test_another_shape_is_named(tmp_path: Path) -> None:
    weights = weights_of(tmp_path, tensors())
    with pytest.raises(UserError) as caught:
        weights.resolve(MODEL | {EMBEDDING: (5, 2), "model.norm.weight": (3,)})
    assert f"{EMBEDDING} in " in caught.value.what
    assert "is [4, 2], wanted [5, 2]; also model.norm.weight" in caught.value.what


def test_a_transposed_shape_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="another shape"):
        weights_of(tmp_path, tensors()).resolve(MODEL | {EMBEDDING: (2, 4)})


def test_a_tied_head_may_be_absent(tmp_path: Path) -> None:
    values = tensors()
    del values[HEAD]
    assert weights_of(tmp_path, values).resolve(MODEL, tied=TIED)[HEAD] == EMBEDDING


def test_a_tied_embedding_may_be_stored_as_the_head(tmp_path: Path) -> None:
    values = tensors()
    del values[EMBEDDING]
    found = weights_of(tmp_path, values).resolve(MODEL, tied=TIED)
    assert found[EMBEDDING] == found[HEAD] == HEAD


def test_an_untied_head_must_be_there(tmp_path: Path) -> None:
    values = tensors()
    del values[HEAD]
    with pytest.raises(UserError, match="1 of the 3 tensors .*: lm_head.weight"):
        weights_of(tmp_path, values).resolve(MODEL)


def test_a_tied_head_of_the_same_values(tmp_path: Path) -> None:
    values = tensors()
    values[HEAD] = values[EMBEDDING].clone()
    assert weights_of(tmp_path, values).resolve(MODEL, tied=TIED)[HEAD] == EMBEDDING


def test_other_files_of_a_checkpoint_are_passed_over(tmp_path: Path) -> None:
    path = floats(tmp_path / "model.safetensors", a=(2,))
    assert open_weights([str(path), "config.json", "tokenizer.json"]).names() == ["a"]


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    path = tmp_path / "pytorch_model.bin"
    torch.save({"a": torch.ones(1)}, path)
    with pytest.raises(UserError, match="never opened"):
        open_weights([str(path)])
