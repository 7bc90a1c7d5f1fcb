"""Checkpoints of compressed-tensors: values worked out by hand, and everything else refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import MODELS
from safetensors.torch import save_file

from rules_executorch.checkpoint import compressed_tensors
from rules_executorch.checkpoint.config import load_config, read_config
from rules_executorch.checkpoint.describe import describe_safetensors
from rules_executorch.checkpoint.description import StoredQuantization, WeightScheme
from rules_executorch.checkpoint.sources import find_sources
from rules_executorch.checkpoint.tiny import make
from rules_executorch.checkpoint.weights import open_weights
from rules_executorch.common.errors import UserError

COUNTING = torch.tensor([[0x76543210, 0xFEDCBA98 - 2**32]], dtype=torch.int32)
"""A row of 16 values in 4 bits: 0 to 15, which stand for -8 to 7."""


def weight(folder: Path, **parts: torch.Tensor) -> torch.Tensor:
    """The weight of the layer `a`, from the parts that are stored."""
    path = str(folder / "model.safetensors")
    save_file({f"a.{name}": tensor.contiguous() for name, tensor in parts.items()}, path)
    weights = open_weights([path])
    assert weights.names() == ["a.weight"]
    value = weights.tensor("a.weight")
    assert weights.shape("a.weight") == tuple(value.shape)
    assert weights.dtype("a.weight") == str(value.dtype).removeprefix("torch.")
    return value


def test_packed_groups(tmp_path: Path) -> None:
    value = weight(
        tmp_path,
        weight_packed=COUNTING,
        weight_scale=torch.tensor([[0.5, 2.0]], dtype=torch.bfloat16),
        weight_shape=torch.tensor([1, 16]),
    )
    assert value.dtype == torch.bfloat16
    assert value.tolist() == [[i / 2 for i in range(-8, 0)] + [2.0 * i for i in range(8)]]


def test_a_width_that_words_do_not_divide(tmp_path: Path) -> None:
    value = weight(
        tmp_path,
        weight_packed=COUNTING,
        weight_scale=torch.ones(1, 1),
        weight_shape=torch.tensor([1, 13]),
    )
    assert value.tolist() == [list(range(-8, 5))]


def test_packed_zero_points(tmp_path: Path) -> None:
    """Zero points -3 and 2 of the first group, 1 and 0 of the second: packed along the rows."""
    value = weight(
        tmp_path,
        weight_packed=COUNTING.repeat(2, 1),
        weight_scale=torch.ones(2, 2),
        weight_shape=torch.tensor([2, 16]),
        weight_zero_point=torch.tensor([[0xA5, 0x89]], dtype=torch.int32),
    )
    first = [[i + 3 for i in range(-8, 0)], [i - 2 for i in range(-8, 0)]]
    second = [[i - 1 for i in range(8)], list(range(8))]
    assert value.tolist() == [[*a, *b] for a, b in zip(first, second, strict=True)]


def test_packed_bytes(tmp_path: Path) -> None:
    """8 bits: 0x80 stands for 0. One scale for the whole tensor."""
    words = torch.tensor([[0x7F818000 - 2**32 * 0], [0x00FF8180]], dtype=torch.int32)
    value = weight(
        tmp_path,
        weight_packed=words.repeat(1, 2),
        weight_scale=torch.tensor([0.5]),
        weight_shape=torch.tensor([2, 8]),
    )
    assert value.tolist() == [[-64.0, 0.0, 0.5, -0.5] * 2, [0.0, 0.5, 63.5, -64.0] * 2]


@pytest.mark.parametrize(
    ("groups", "scales"), [([1, 0] * 8, [2.0, 1.0] * 8), ([-1] * 16, [1.0] * 8 + [2.0] * 8)]
)
def test_reordered_columns(tmp_path: Path, groups: list[int], scales: list[float]) -> None:
    value = weight(
        tmp_path,
        weight_packed=COUNTING,
        weight_scale=torch.tensor([[1.0, 2.0]]),
        weight_shape=torch.tensor([1, 16]),
        weight_g_idx=torch.tensor(groups, dtype=torch.int32),
    )
    assert value.tolist() == [[(i - 8) * scale for i, scale in enumerate(scales)]]


def test_integers_by_channel(tmp_path: Path) -> None:
    value = weight(
        tmp_path,
        weight=torch.tensor([[-128, 127], [4, 2]], dtype=torch.int8),
        weight_scale=torch.tensor([[0.5], [3.0]], dtype=torch.float16),
        weight_zero_point=torch.tensor([[2], [-1]], dtype=torch.int8),
        input_scale=torch.tensor([0.1]),
        input_zero_point=torch.tensor([0], dtype=torch.int8),
    )
    assert value.tolist() == [[-65.0, 62.5], [15.0, 9.0]]


def test_floats_by_block(tmp_path: Path) -> None:
    value = weight(
        tmp_path,
        weight=torch.full((4, 6), 1.5).to(torch.float8_e4m3fn),
        weight_scale=torch.tensor([[1.0, 2.0], [4.0, 8.0]]),
    )
    assert value.tolist() == [[1.5] * 3 + [3.0] * 3] * 2 + [[6.0] * 3 + [12.0] * 3] * 2


def test_layers_that_were_ignored_stay(tmp_path: Path) -> None:
    path = str(tmp_path / "model.safetensors")
    kept = torch.randn(3, 2)
    quantized = {"a.weight": torch.ones(2, 2, dtype=torch.int8), "a.weight_scale": torch.ones(1)}
    save_file({"lm_head.weight": kept, **quantized}, path)
    weights = open_weights([path])
    assert weights.names() == ["a.weight", "lm_head.weight"]
    assert torch.equal(weights.tensor("lm_head.weight"), kept)
    assert weights.source("a.weight") == path


BYTES = torch.zeros(4, 6, dtype=torch.int8)


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"weight_packed": COUNTING, "weight_shape": torch.tensor([1, 16])}, "no `weight_scale`"),
        ({"weight_packed": COUNTING, "weight_scale": torch.ones(1, 1)}, "no `weight_shape`"),
        (
            {
                "weight_packed": COUNTING,
                "weight_scale": torch.ones(1, 1),
                "weight_shape": torch.tensor([1, 33]),
            },
            r"words \[1, 2\] do not hold a weight \[1, 33\]",
        ),
        ({"weight_scale": torch.ones(1)}, "no `weight`"),
        ({"weight": BYTES, "weight_scale": torch.ones(4, 4)}, r"scales \[4, 4\] do not fit"),
        ({"weight": BYTES, "weight_scale": torch.ones(4)}, r"scales \[4\] do not fit"),
        ({"weight": BYTES, "weight_scale": torch.ones(1, dtype=torch.uint8)}, "scales are uint8"),
        ({"weight": BYTES.float(), "weight_scale": torch.ones(1)}, r"float32 \[4, 6\]"),
        (
            {
                "weight": BYTES,
                "weight_scale": torch.ones(4, 1),
                "weight_zero_point": torch.zeros(4, 2, dtype=torch.int8),
            },
            r"zero points \[4, 2\] do not fit",
        ),
    ],
)
def test_parts_that_do_not_fit(tmp_path: Path, parts: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says) as refused:
        weight(tmp_path, **parts)
    assert "The quantized layer a in" in str(refused.value)
    assert "before quantization" in str(refused.value)


W4A16 = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 8, "symmetric": True}


def scheme(**changes: Any) -> dict[str, Any]:
    """The `quantization_config` of a checkpoint in 4 bits."""
    group = {"targets": ["Linear"], "weights": W4A16, "input_activations": None}
    return {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "config_groups": {"group_0": group},
        "ignore": ["lm_head"],
        "kv_cache_scheme": None,
    } | changes


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"quant_method": "gptq", "bits": 4}, r"\(gptq\).*compressed-tensors alone is read"),
        ({"quant_method": "awq"}, r"\(awq\)"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, r"\(bitsandbytes\)"),
        ({"quant_method": "fp8"}, r"\(fp8\)"),
        ("int4", r"\(None\)"),
        (scheme(format="nvfp4-pack-quantized"), "format nvfp4-pack-quantized.*pack-quantized"),
        (scheme(format="marlin-24"), "format marlin-24"),
        (scheme(sparsity_config={"format": "sparse-24-bitmask"}), "format sparse-24-bitmask"),
        (scheme(config_groups={"g": {"weights": W4A16 | {"num_bits": 3}}}), "weights of 3 bits"),
        (scheme(config_groups=["W4A16"]), "not an object of schemes"),
        (scheme(kv_cache_scheme={"num_bits": 8}), "a quantized cache"),
        (scheme(transform_config={"config_groups": {"R1": {}}}), "weights that are rotated"),
    ],
)
def test_other_schemes_are_refused(tmp_path: Path, config: Any, says: str) -> None:
    path = tmp_path / "config.json"
    text = json.loads((MODELS / "llama" / "config.json").read_text())
    path.write_text(json.dumps(text | {"quantization_config": config}))
    with pytest.raises(UserError, match=says) as refused:
        read_config(str(path))
    assert "Write" in str(refused.value) or "Use the" in str(refused.value)


def packed(values: torch.Tensor) -> dict[str, torch.Tensor]:
    """Parts of a weight in groups of 8, rounded to nearest; the opposite of what is tested."""
    grouped = values.unflatten(1, (-1, 8))
    scale = grouped.abs().amax(2).clamp(min=1e-6) / 7
    rounded = (grouped / scale.unsqueeze(2)).round().clamp(-8, 7).flatten(1).long() + 8
    words = (rounded.unflatten(1, (-1, 8)) << torch.arange(0, 32, 4)).sum(2)
    words = torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)
    shape = torch.tensor(values.shape)
    return {"weight_packed": words, "weight_scale": scale, "weight_shape": shape}


@pytest.fixture
def checkpoint(tmp_path: Path) -> tuple[Path, dict[str, torch.Tensor]]:
    """A Llama whose linear layers are in 4 bits, and its weights before that."""
    text = json.loads((MODELS / "llama" / "config.json").read_text())
    plain = tmp_path / "plain" / "config.json"
    plain.parent.mkdir()
    plain.write_text(json.dumps(text))
    tensors = make(load_config(str(plain)), 0, "float32")
    stored = {}
    for name, value in tensors.items():
        if name.endswith("_proj.weight"):
            layer = name.removesuffix("weight")
            stored |= {layer + part: tensor for part, tensor in packed(value).items()}
        else:
            stored[name] = value
    (tmp_path / "config.json").write_text(json.dumps(text | {"quantization_config": scheme()}))
    save_file(stored, str(tmp_path / "model.safetensors"))
    save_file(tensors, str(plain.parent / "model.safetensors"))
    return tmp_path, tensors


def described(folder: Path) -> tuple[Any, dict[str, Any]]:
    files = [str(folder / name) for name in ("config.json", "model.safetensors")]
    return describe_safetensors(find_sources(files), "text-generation")


def test_description(checkpoint: tuple[Path, dict[str, torch.Tensor]]) -> None:
    """As before quantization but for its bytes; the config, and so the export, is the same."""
    folder, tensors = checkpoint
    description, config = described(folder)
    plain, plain_config = described(folder / "plain")
    assert config == plain_config
    assert description.quantization == StoredQuantization(
        method="compressed-tensors",
        format="pack-quantized",
        weights=(WeightScheme(type="int", bits=4, strategy="group", group_size=8, symmetric=True),),
    )
    assert plain.quantization is None
    assert description.num_parameters == plain.num_parameters
    assert description.weight_bytes < plain.weight_bytes
    weights = open_weights([str(folder / "model.safetensors")])
    assert weights.names() == sorted(tensors)
    for name, value in tensors.items():
        step = value.abs().max() / 7
        assert (weights.tensor(name) - value).abs().max() <= step / 2 + 1e-6, name


def test_weights_without_a_config_that_says_how(
    checkpoint: tuple[Path, dict[str, torch.Tensor]],
) -> None:
    folder, _ = checkpoint
    (folder / "config.json").write_text((folder / "plain" / "config.json").read_text())
    with pytest.raises(UserError, match="are quantized, and .* has no `quantization_config`"):
        described(folder)


def test_unpack() -> None:
    assert compressed_tensors.unpack(COUNTING, 4, 16).tolist() == [list(range(-8, 8))]
