"""An image classifier in int8, for Arm's microcontrollers and their neural processors."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
import tiny_programs
import torch
from safetensors.torch import save_file

from rules_executorch.backends import find_backend
from rules_executorch.common.errors import UserError
from rules_executorch.lower.calibrate import RANDOM_SAMPLES, read_calibration
from rules_executorch.lower.calibration_source import FileSamples, RandomSamples
from rules_executorch.program.info import TensorInfo

ETHOS_U = ("ethos-u55-128", "ethos-u55-256", "ethos-u65-256", "ethos-u85-256")


def check_reads_back(info: Any) -> None:
    method = info.methods["forward"]
    assert method.inputs == [TensorInfo("float32", [1, 3, 32, 32], False)]
    assert method.outputs == [TensorInfo("float32", [1, 4], False)]


@pytest.mark.parametrize("target", ETHOS_U)
def test_ethos_u(resnet: tiny_programs.Exported, tmp_path: Path, target: str) -> None:
    path = tmp_path / "model.pte"
    lowered, info = tiny_programs.lower(resnet, path, "ethos_u", {"target": target})
    check_reads_back(info)
    method = info.methods["forward"]
    assert method.delegates == {"EthosUBackend": 1}
    # What is left turns the floats at the border into int8 and back.
    assert set(method.operators) == {
        "quantized_decomposed::quantize_per_tensor.out",
        "quantized_decomposed::dequantize_per_tensor.out",
    }
    blob = tiny_programs.payload(str(path))
    blocks = _vela_blocks(blob)
    assert list(blocks)[0] == "vela_bin_stream" and list(blocks)[-1] == "vela_end_stream"
    assert len(blocks["cmd_data"]) > 100 and len(blocks["weight_data"]) > 1000
    assert lowered.calibration == RandomSamples(RANDOM_SAMPLES, seed=0)
    if target == ETHOS_U[0]:
        other = tmp_path / "again.pte"
        options = {"target": target}
        again = tiny_programs.lower_elsewhere(resnet, other, "ethos_u", options)
        assert again == path.read_bytes()


def _vela_blocks(blob: bytes) -> dict[str, bytes]:
    """Blocks by name: 16 bytes of name, a length, 12 bytes of flags, then data in 16s."""
    blocks, position = {}, 0
    while position < len(blob):
        name = blob[position : position + 16].rstrip(b"\0").decode()
        (length,) = struct.unpack_from("<I", blob, position + 16)
        blocks[name] = blob[position + 32 : position + 32 + length]
        position += 32 + -(-length // 16) * 16
    return blocks


def test_cortex_m(resnet: tiny_programs.Exported, tmp_path: Path) -> None:
    path = tmp_path / "model.pte"
    lowered, info = tiny_programs.lower(resnet, path, "cortex_m")
    check_reads_back(info)
    method = info.methods["forward"]
    assert method.delegates == {}
    assert method.operators["cortex_m::quantized_conv2d_nhwc.out"] == 6
    assert method.operators["cortex_m::quantized_linear.out"] == 1
    assert not any("convolution" in name for name in method.operators)
    assert lowered.calibration is not None
    again = tiny_programs.lower_elsewhere(resnet, tmp_path / "again.pte", "cortex_m")
    assert again == path.read_bytes()


def test_tosa_in_integers(resnet: tiny_programs.Exported, tmp_path: Path) -> None:
    path = tmp_path / "model.pte"
    lowered, info = tiny_programs.lower(resnet, path, "tosa", {"scheme": "int8"})
    check_reads_back(info)
    assert info.methods["forward"].delegates == {"TOSABackend": 1}
    assert lowered.delegation["forward"].share() > 0.9
    # The flatbuffer's own file identifier.
    assert tiny_programs.payload(str(path))[4:8] == b"TOSA"


def test_calibration_data_change_the_program(
    resnet: tiny_programs.Exported, tmp_path: Path
) -> None:
    path, samples = tmp_path / "model.pte", str(tmp_path / "samples.safetensors")
    generator = torch.Generator().manual_seed(3)
    save_file({"pixel_values": 9 * torch.rand(5, 1, 3, 32, 32, generator=generator)}, samples)
    calibration = read_calibration(samples, resnet.signature)
    options = {"scheme": "int8"}
    lowered, _ = tiny_programs.lower(resnet, path, "tosa", options, calibration)
    assert isinstance(lowered.calibration, FileSamples) and lowered.calibration.samples == 5
    assert len(lowered.calibration.sha256) == 64
    other = tmp_path / "random.pte"
    tiny_programs.lower(resnet, other, "tosa", options)
    assert path.read_bytes() != other.read_bytes()
    with pytest.raises(UserError, match="nothing of this lowering for tosa is calibrated"):
        tiny_programs.lower(resnet, path, "tosa", {}, calibration)


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ({"image": torch.zeros(1, 1, 3, 32, 32)}, "holds image, and the inputs are pixel_values"),
        ({"pixel_values": torch.zeros(2, 3, 32, 32)}, r"is float32 \[2, 3, 32, 32\]"),
        ({"pixel_values": torch.zeros(2, 1, 3, 32, 32, dtype=torch.int64)}, "is int64"),
        ({"pixel_values": torch.zeros(0, 1, 3, 32, 32)}, "has no samples"),
    ],
)
def test_calibration_of_another_form(
    resnet: tiny_programs.Exported, tmp_path: Path, tensors: dict[str, Any], words: str
) -> None:
    path = str(tmp_path / "samples.safetensors")
    save_file(tensors, path)
    with pytest.raises(UserError, match=words) as refused:
        read_calibration(path, resnet.signature)
    assert "pixel_values: float32 (samples, 1, 3, 32, 32)" in str(refused.value)


def test_a_file_that_is_no_safetensors(resnet: tiny_programs.Exported, tmp_path: Path) -> None:
    path = tmp_path / "samples.safetensors"
    path.write_bytes(b"not this")
    with pytest.raises(UserError, match="is not readable"):
        read_calibration(str(path), resnet.signature)


@pytest.mark.parametrize("name", ["cortex_m", "ethos_u"])
def test_text_generation_is_refused(
    llama: tiny_programs.Exported, tmp_path: Path, name: str
) -> None:
    with pytest.raises(UserError, match=f"{name} is for programs without a cache"):
        tiny_programs.lower(llama, tmp_path / "model.pte", name)
    assert not find_backend(name).runs_here()
