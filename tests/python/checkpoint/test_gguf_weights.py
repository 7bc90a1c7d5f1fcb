"""Tensors and config of GGUF files, against transformers' own loader."""

from __future__ import annotations

import math
from pathlib import Path

import gguf_models
import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from rules_executorch.checkpoint.gguf import architectures
from rules_executorch.checkpoint.gguf.header import GgufFile
from rules_executorch.checkpoint.gguf.weights import GgufWeights
from rules_executorch.checkpoint.weights import open_weights
from rules_executorch.common.errors import UserError

SAME_BITS = {
    "dtype",
    "architectures",
    "transformers_version",
    "_name_or_path",
    "_model_name_or_path",
    "eos_token_id",
    "bos_token_id",
    "pad_token_id",
    "unk_token_id",
    "rms_norm_eps",
}


def ours(path: Path):
    """transformers' configuration object of the config that is rebuilt."""
    file = GgufFile(str(path))
    values = architectures.config(file, architectures.Keys(file))
    return AutoConfig.for_model(**values)


def reference(path: Path, config) -> dict[str, torch.Tensor]:
    """What transformers makes of the tensors."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    return load_gguf_checkpoint(str(path), return_tensors=True, model_to_load=model)["tensors"]


def assert_same(path: Path) -> None:
    config = ours(path)
    expected = reference(path, config)
    with torch.device("meta"):
        state = AutoModelForCausalLM.from_config(config).state_dict()
    weights = open_weights([str(path)])
    tied = {"lm_head.weight": "model.embed_tokens.weight"} if config.tie_word_embeddings else {}
    found = weights.resolve({n: tuple(v.shape) for n, v in state.items()}, tied=tied)
    compared = 0
    for name in state:
        if name not in expected and name in tied:
            continue
        value = weights.tensor(found[name])
        assert value.dtype == torch.float32
        assert torch.equal(value.view(torch.int32), expected[name].view(torch.int32)), name
        compared += 1
    assert compared >= len(weights.names())


@pytest.mark.parametrize(
    "kind",
    ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"]
    + ["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"],
)
def test_types(tmp_path: Path, kind: str) -> None:
    assert_same(gguf_models.write(tmp_path / "m.gguf", kind=kind, layers=1))


@pytest.mark.parametrize("architecture", architectures.ARCHITECTURES)
@pytest.mark.parametrize("tied", [True, False])
def test_architectures(tmp_path: Path, architecture: str, tied: bool) -> None:
    layers = 7 if architecture == "gemma3" else 2
    assert_same(gguf_models.write(tmp_path / "m.gguf", architecture, layers=layers, tied=tied))


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
def test_configs(tmp_path: Path, architecture: str) -> None:
    path = gguf_models.write(tmp_path / "m.gguf", architecture)
    mine = ours(path).to_dict()
    theirs = AutoConfig.from_pretrained(tmp_path, gguf_file="m.gguf").to_dict()
    for key in (set(mine) | set(theirs)) - SAME_BITS:
        if key == "head_dim" and architecture == "qwen3":
            # Theirs leaves Qwen 3's head size at its default of 128, whatever the file says.
            assert mine[key] == gguf_models.HEAD_DIM
            continue
        assert mine.get(key) == theirs.get(key), key
    assert mine["rms_norm_eps"] == 1e-5


def test_gemma3_config(tmp_path: Path) -> None:
    keys = {"rope.scaling.type": "linear", "rope.scaling.factor": 8.0}
    path = gguf_models.write(tmp_path / "m.gguf", "gemma3", layers=7, keys=keys)
    config = ours(path)
    assert config.layer_types == ["sliding_attention"] * 5 + ["full_attention"] + [
        "sliding_attention"
    ]
    assert config.sliding_window == 16
    assert config.query_pre_attn_scalar == gguf_models.HEAD_DIM
    full, sliding = (config.rope_parameters[f"{k}_attention"] for k in ("full", "sliding"))
    assert (full["rope_type"], full["factor"], full["rope_theta"]) == ("linear", 8.0, 50_000.0)
    assert (sliding["rope_type"], sliding["rope_theta"]) == ("default", 10_000.0)


def llama3_factors(base: float, dim: int, factor: float) -> np.ndarray:
    """The factors as llama.cpp's converter computes them, in numpy and float32."""
    frequencies = 1.0 / (base ** (np.arange(0, dim, 2, dtype=np.float32) / dim))
    factors = []
    for frequency in frequencies:
        length = 2 * math.pi / frequency
        if length < 8192 / 4:
            factors.append(1.0)
        elif length > 8192:
            factors.append(factor)
        else:
            smooth = (8192 / length - 1) / 3
            factors.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(factors, dtype=np.float32)


@pytest.mark.parametrize("factor", [8.0, 32.0])
def test_llama3_rope_is_recovered(tmp_path: Path, factor: float) -> None:
    extra = {architectures.ROPE_FACTORS: llama3_factors(50_000.0, gguf_models.HEAD_DIM, factor)}
    path = gguf_models.write(tmp_path / "m.gguf", extra=extra)
    rope = ours(path).rope_parameters
    assert (rope["rope_type"], rope["factor"]) == ("llama3", factor)
    assert rope["original_max_position_embeddings"] == 8192
    assert not any("rope" in name for name in open_weights([str(path)]).names())


def test_other_rope_factors_are_refused(tmp_path: Path) -> None:
    factors = np.linspace(1, 4, gguf_models.HEAD_DIM // 2, dtype=np.float32)
    path = gguf_models.write(tmp_path / "m.gguf", extra={architectures.ROPE_FACTORS: factors})
    with pytest.raises(UserError, match="not the factors of Llama 3"):
        ours(path)
    short = {architectures.ROPE_FACTORS: factors[:3]}
    path = gguf_models.write(tmp_path / "n.gguf", extra=short)
    with pytest.raises(UserError, match="not 32 float32 numbers"):
        ours(path)


REFUSED = {
    "an unknown architecture": ({"architecture": "mamba"}, "architecture 'mamba'"),
    "a mixture of experts": ({"keys": {"expert_count": 8}}, "mixture of experts"),
    "yarn": ({"keys": {"rope.scaling.type": "yarn"}}, "scales its rope by 'yarn'"),
    "an unknown tensor": (
        {"extra": {"blk.0.attn_sinks.weight": np.zeros(4, np.float32)}},
        "'blk.0.attn_sinks.weight', which the architecture llama has no place for",
    ),
    "no embedding": ({"drop": ("token_embd.weight",)}, "no embedding"),
    "no width": ({"keys": {"embedding_length": None}}, "no `llama.embedding_length`"),
    "no heads": ({"keys": {"attention.head_count": 0}}, "head_count. in .* is 0"),
    "heads that differ": (
        {"keys": {"attention.head_count_kv": [2, 1]}},
        "`llama.attention.head_count_kv` .* a single int is wanted",
    ),
    "a width that is text": ({"keys": {"embedding_length": "wide"}}, "a single int is wanted"),
    "a scale that is no number": (
        {"keys": {"rope.scaling.type": "linear", "rope.scaling.factor": math.nan}},
        "'nan', and a single positive float is wanted",
    ),
    "a scale of 0": (
        {"keys": {"rope.scaling.type": "linear", "rope.scaling.factor": 0.0}},
        "'0.0', and a single positive float is wanted",
    ),
    "values of another size": ({"keys": {"attention.value_length": 32}}, "different sizes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(tmp_path: Path, name: str) -> None:
    arguments, words = REFUSED[name]
    arguments = dict(arguments)
    if arguments.get("architecture") == "mamba":
        path = gguf_models.write(tmp_path / "m.gguf")
        path.write_bytes(path.read_bytes().replace(b"llama", b"mamba"))
    else:
        path = gguf_models.write(tmp_path / "m.gguf", **arguments)
    with pytest.raises(UserError, match=words) as caught:
        GgufWeights(str(path))
        ours(path)
    assert "m.gguf" in str(caught.value)
    assert caught.value.instead


def test_equal_heads_of_all_layers_may_be_an_array(tmp_path: Path) -> None:
    path = gguf_models.write(tmp_path / "m.gguf", keys={"attention.head_count_kv": [2, 2]})
    assert ours(path).num_key_value_heads == 2
