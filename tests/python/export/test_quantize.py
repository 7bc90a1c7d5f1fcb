"""Source quantization: torchao's values, a graph from the config alone, nothing skipped unsaid."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from conftest import LLAMA, Built, Checkpoint, build, make_checkpoint
from safetensors.torch import save_file
from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
from torchao.quantization.granularity import PerGroup

from rules_executorch.checkpoint.weights import open_weights
from rules_executorch.common.errors import UserError
from rules_executorch.export.build import build_model, load_weights, untouched_memory
from rules_executorch.export.generation import export_model
from rules_executorch.export.options import ExportOptions, Quantization
from rules_executorch.export.pt2 import read_program, write_program
from rules_executorch.export.quantize import (
    SCHEMES,
    dequantized_weight,
    quantize_model,
    quantize_weight,
    skipped_layers,
)
from rules_executorch.export.signature import QuantizedWeight
from rules_executorch.lower.bind import bind_weights
from rules_executorch.lower.checks import check_quantization
from rules_executorch.lower.options import LowerOptions
from rules_executorch.run.parity import Eager, RuntimeProgram, compare

NARROW = LLAMA | {
    "hidden_size": 72,
    "intermediate_size": 144,
    "head_dim": 18,
    "num_hidden_layers": 1,
}
"""Widths that groups of 32 do not divide."""


def how(scheme: str, group_size: int | None, *, embedding: bool = False) -> QuantizedWeight:
    return QuantizedWeight("a.weight", (8, 64), scheme, group_size, embedding, ("a",))


GROUPED = how("8da4w", 32)


def model_of(folder: Path, config: dict) -> torch.nn.Module:
    return build_model(make_checkpoint(folder, config).config, "float32")


def test_values_are_torchaos() -> None:
    weight = torch.randn(48, 64, generator=torch.Generator().manual_seed(0))
    layer = torch.nn.Linear(64, 48, bias=False)
    layer.weight = torch.nn.Parameter(weight.clone())
    quantize_(
        layer,
        Int8DynamicActivationIntxWeightConfig(
            weight_dtype=torch.int4, weight_granularity=PerGroup(32)
        ),
    )
    values, scales, zeros = quantize_weight(weight, GROUPED)
    assert torch.equal(values, layer.weight.qdata)
    assert torch.equal(scales, layer.weight.scale)
    assert torch.equal(zeros, layer.weight.zero_point)
    assert torch.equal(dequantized_weight(weight, GROUPED), layer.weight.dequantize())
    assert (dequantized_weight(weight, GROUPED) - weight).abs().max() < 0.3


def test_one_export_for_all_weights(tmp_path: Path) -> None:
    """The stored export has no values, and a checkpoint's own values arrive in it."""
    checkpoint = make_checkpoint(tmp_path, LLAMA)
    options = ExportOptions(max_cache_len=16, quantization=Quantization("8da4w", embedding="8w"))
    exported = export_model(checkpoint.config, options)
    path = str(tmp_path / "model.pt2")
    write_program(exported.program, path)
    assert Path(path).stat().st_size < 600_000
    assert len(exported.signature.quantized) == 7 * LLAMA["num_hidden_layers"] + 2

    program = read_program(path)
    weights = open_weights([checkpoint.weights_path])
    bind_weights(program, exported.signature, weights)
    embedding = weights.tensor("model.embed_tokens.weight")
    stored = program.state_dict["model.lm_head.parametrizations.weight.original0"]
    assert torch.equal(stored, quantize_weight(embedding, GROUPED)[0])
    stored = program.state_dict["model.model.embed_tokens.parametrizations.weight.original0"]
    assert torch.equal(stored, quantize_weight(embedding, how("8w", None, embedding=True))[0])


def test_a_checkpoint_that_comes_quantized(tmp_path: Path, llama_xnnpack: Built) -> None:
    """The export of the plain checkpoint takes it; its layers are what they are worth."""
    source = open_weights([llama_xnnpack.checkpoint.weights_path])
    stored = {}
    for name in source.names():
        value = source.tensor(name)
        if name.endswith("_proj.weight"):
            scale = value.abs().amax(1, keepdim=True) / 127
            stored[name] = (value / scale).round().to(torch.int8)
            stored[f"{name}_scale"] = scale
        else:
            stored[name] = value
    path = str(tmp_path / "model.safetensors")
    save_file(stored, path)
    program = read_program(llama_xnnpack.exported_path)
    bind_weights(program, llama_xnnpack.signature, open_weights([path]))
    name = "model.layers.1.mlp.down_proj.weight"
    bound = program.state_dict[f"model.{name}"]
    assert torch.equal(bound, stored[name].float() * stored[f"{name}_scale"])
    assert 0 < (bound - source.tensor(name)).abs().max() < 0.01


def test_quantizing_the_head_leaves_the_tied_embedding_alone(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path, LLAMA)
    model = build_model(checkpoint.config, "float32")
    weights = open_weights([checkpoint.weights_path])
    load_weights(model, weights, "float32")
    quantize_model(model, Quantization("8da4w"))
    kept = model.get_input_embeddings().weight
    assert torch.equal(kept, weights.tensor("model.embed_tokens.weight"))
    assert model.lm_head.weight is not kept


def test_groups_that_do_not_divide_are_refused(tmp_path: Path) -> None:
    model = model_of(tmp_path, NARROW)
    with pytest.raises(UserError) as refused:
        quantize_model(model, Quantization("8da4w", group_size=32))
    message = str(refused.value)
    assert "do not divide 8 layers: model.layers.0.self_attn.q_proj (72 wide)" in message
    assert "and 4 more" in message
    assert "quantization_group_size = one of 8, 24, 72" in message
    assert "quantization_allow_skipped = True" in message


def test_skipping_is_listed(tmp_path: Path) -> None:
    model = model_of(tmp_path, NARROW | {"intermediate_size": 128})
    allowed = Quantization("8da4w", group_size=32, allow_skipped=True)
    skipped = skipped_layers(model, allowed)
    with untouched_memory():
        quantized = quantize_model(model, allowed)
    assert [weight.name for weight in quantized] == ["model.layers.0.mlp.down_proj.weight"]
    assert len(skipped) == 7
    assert skipped["model.layers.0.mlp.up_proj"] == 72


def test_nothing_left_to_quantize_is_refused(tmp_path: Path) -> None:
    model = model_of(tmp_path, NARROW)
    with pytest.raises(UserError, match="fits none"):
        quantize_model(model, Quantization("8da4w", group_size=32, allow_skipped=True))


@pytest.mark.parametrize(
    ("quantization", "says"),
    [
        (Quantization("8da3w"), '"8da3w" is not a scheme.*8da4w'),
        (Quantization("8da4w", embedding="8da4w"), "quantization_embedding.*4w, 8w"),
        (Quantization("fpa4w"), "Metal backend alone.*mlx"),
        (Quantization(None), "neither"),
    ],
)
def test_unknown_schemes(llama: Checkpoint, quantization: Quantization, says: str) -> None:
    with pytest.raises(UserError, match=says):
        export_model(llama.config, ExportOptions(max_cache_len=8, quantization=quantization))


@pytest.mark.parametrize(
    ("backend", "quantization", "says"),
    [
        ("xnnpack", {"scheme": "4w"}, '"4w".*one of 8da4w, 8da8w'),
        ("xnnpack", {"scheme": "8w"}, '"8w".*one of 8da4w, 8da8w'),
        ("xnnpack", {"scheme": "8da4w", "group_size": 24}, "groups of 32.*is 24"),
        ("portable", {"scheme": "8da4w"}, "no kernels.*Export without quantization"),
    ],
)
def test_schemes_without_kernels_are_refused_at_once(
    backend: str, quantization: dict, says: str
) -> None:
    from rules_executorch.backends import find_backend

    given = Quantization(**{"scheme": None} | quantization)
    with pytest.raises(UserError, match=says):
        check_quantization(find_backend(backend), given)


@pytest.mark.parametrize("scheme", ["8da4w", "8da8w"])
def test_program_runs_with_every_layer_delegated(
    workspace: Path, llama: Checkpoint, scheme: str
) -> None:
    options = ExportOptions(
        max_cache_len=16,
        quantization=Quantization(scheme),
        custom_ops=("custom_kv_cache", "custom_sdpa"),
    )
    built = build(workspace / f"llama_{scheme}", llama, options, LowerOptions(backend="xnnpack"))
    counted = built.lowered.delegation["forward"]
    assert counted.delegated["aten::linear"] == 7 * LLAMA["num_hidden_layers"] + 1
    assert not [name for name in counted.undelegated if name.startswith("torchao::")]
    weights = open_weights([llama.weights_path])
    parity = compare(
        RuntimeProgram(built.path),
        Eager(llama.config, weights, "float32", built.signature.quantized),
        built.signature,
        tolerance=0.05,
    )
    assert parity.failure() is None


def test_every_scheme_changes_shapes_only_as_it_says() -> None:
    weight = torch.randn(8, 64, generator=torch.Generator().manual_seed(1))
    for scheme in SCHEMES.values():
        group_size = 32 if scheme.grouped else None
        values, scales, zeros = quantize_weight(weight, how(scheme.name, group_size))
        assert values.shape == weight.shape and values.dtype == torch.int8
        assert values.int().abs().max() <= 2 ** (scheme.bits - 1)
        assert scales.shape == zeros.shape == (8, 2 if scheme.grouped else 1)
