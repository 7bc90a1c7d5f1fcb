"""int8 on the CPU: calibrated, and with ranges found as the program runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tiny_programs
import torch
from safetensors.torch import save_file

from rules_executorch.backends import find_backend
from rules_executorch.checkpoint.weights import open_weights
from rules_executorch.common.errors import UserError
from rules_executorch.export.pt2 import read_program
from rules_executorch.lower.bind import bind_weights
from rules_executorch.lower.calibrate import quantize_program, random_calibration, read_calibration
from rules_executorch.lower.calibration_source import FileSamples
from rules_executorch.lower.options import LowerOptions
from rules_executorch.run.parity import Eager, RuntimeProgram, compare

GPT2: dict[str, Any] = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "dtype": "float32",
    "n_embd": 32,
    "n_head": 2,
    "n_layer": 1,
    "n_positions": 32,
    "vocab_size": 128,
}
"""Its layers multiply by matrices that XNNPACK's quantizer does not take."""


def fake_quantized(exported: tiny_programs.Exported, options: dict[str, Any], samples: list) -> Any:
    """The same quantizer's program in eager mode: integers that floats stand for."""
    program = read_program(exported.program_path)
    bind_weights(program, exported.signature, open_weights([exported.weights_path]))
    quantizer = find_backend("xnnpack").quantizer(options)
    dims = exported.signature.dynamic_dims
    with torch.no_grad():
        return quantize_program(program, quantizer, samples, dims).program.module()


@pytest.fixture(scope="module")
def images(workspace: Path) -> str:
    path = str(workspace / "images.safetensors")
    generator = torch.Generator().manual_seed(3)
    save_file({"pixel_values": torch.rand(5, 1, 3, 32, 32, generator=generator)}, path)
    return path


def test_calibrated(resnet: tiny_programs.Exported, images: str, tmp_path: Path) -> None:
    path, options = tmp_path / "model.pte", {"scheme": "int8"}
    calibration = read_calibration(images, resnet.signature)
    lowered, info = tiny_programs.lower(resnet, path, "xnnpack", options, calibration)
    assert isinstance(lowered.calibration, FileSamples) and lowered.calibration.samples == 5
    layers, skipped = lowered.layers
    assert layers.pop("classifier.1") == "linear"
    assert set(layers.values()) == {"conv2d"} and len(layers) == 6
    assert not skipped
    assert lowered.delegation["forward"].share() > 0.9
    plain = tmp_path / "plain.pte"
    tiny_programs.lower(resnet, plain, "xnnpack")
    assert path.stat().st_size < plain.stat().st_size

    program = RuntimeProgram(str(path))
    eager = fake_quantized(resnet, options, calibration.samples)
    for sample in calibration.samples:
        expected = eager(**sample)[0]
        step = expected.abs().max() / 127
        got = program.run(sample["pixel_values"])
        # Two steps of int8: each program rounds by itself.
        assert (got - expected).abs().max() <= 2 * step


def test_dynamic(dynamic_llama: tiny_programs.Exported, tmp_path: Path) -> None:
    """Every linear layer, a length that varies, and a cache that starts empty."""
    path, options = tmp_path / "model.pte", {"scheme": "int8_dynamic"}
    lowered, info = tiny_programs.lower(dynamic_llama, path, "xnnpack", options)
    assert lowered.calibration is None
    layers, skipped = lowered.layers
    assert len(layers) == 7 * 2 + 1 and set(layers.values()) == {"linear"}
    assert layers["model.layers.1.mlp.down_proj"] == "linear" and not skipped
    counted = lowered.delegation["forward"]
    assert counted.delegated["aten::linear"] == len(layers)
    assert info.methods["forward"].inputs[0].dynamic

    sample = random_calibration(dynamic_llama.signature).samples[0]
    eager = fake_quantized(dynamic_llama, options, [sample])
    expected = eager(**sample)[0]
    program = RuntimeProgram(str(path))
    got = program(sample["input_ids"], sample["cache_position"])
    assert (got - expected).abs().max() <= 0.02 * expected.abs().max()
    weights = open_weights([dynamic_llama.weights_path])
    parity = compare(
        program,
        Eager(dynamic_llama.config, weights, "float32"),
        dynamic_llama.signature,
        tolerance=0.1,
    )
    assert parity.failure() is None


def test_dynamic_texts(workspace: Path, tmp_path: Path) -> None:
    """Masks and types of tokens are made of integers, which stay what they are."""
    bert = tiny_programs.export(workspace / "bert", tiny_programs.BERT, tiny_programs.TEXTS)
    path, options = tmp_path / "model.pte", {"scheme": "int8_dynamic"}
    lowered, _ = tiny_programs.lower(bert, path, "xnnpack", options)
    layers, skipped = lowered.layers
    assert set(layers.values()) == {"linear"} and len(layers) == 8 and not skipped
    sample = random_calibration(bert.signature).samples[0]
    expected = fake_quantized(bert, options, [sample])(**sample)[0]
    got = RuntimeProgram(str(path)).outputs(*sample.values())[0]
    assert (got - expected).abs().max() <= 0.02 * expected.abs().max()


def test_layers_that_stay_are_an_error(workspace: Path, tmp_path: Path) -> None:
    gpt2 = tiny_programs.export(workspace / "gpt2", GPT2, tiny_programs.GENERATION)
    path, options = tmp_path / "model.pte", {"scheme": "int8_dynamic"}
    with pytest.raises(UserError) as refused:
        tiny_programs.lower(gpt2, path, "xnnpack", options)
    assert "leaves 4 of 5 layers as they are: transformer.h.0.attn.c_attn (addmm)" in str(
        refused.value
    )
    assert "allow_unquantized = True" in str(refused.value)
    lowering = LowerOptions("xnnpack", options, allow_unquantized=True)
    lowered, _ = tiny_programs.lower_with(gpt2, path, lowering)
    layers, skipped = lowered.layers
    assert layers == {"lm_head": "linear"}
    assert skipped["transformer.h.0.mlp.c_proj"] == "addmm"


def test_what_calibration_cannot_do(
    resnet: tiny_programs.Exported, llama: tiny_programs.Exported, images: str, tmp_path: Path
) -> None:
    path = tmp_path / "model.pte"
    calibration = read_calibration(images, resnet.signature)
    with pytest.raises(UserError, match="takes its ranges from inputs, and none are given") as none:
        tiny_programs.lower(resnet, path, "xnnpack", {"scheme": "int8"})
    assert "int8_dynamic" in str(none.value)
    with pytest.raises(UserError, match="nothing of this lowering for xnnpack is calibrated"):
        tiny_programs.lower(resnet, path, "xnnpack", {"scheme": "int8_dynamic"}, calibration)
    with pytest.raises(UserError, match="fixed shapes without a cache"):
        tiny_programs.lower(llama, path, "xnnpack", {"scheme": "int8"}, calibration)
