"""Programs of the catalogue's devices, as the rules lowered them, read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rules_executorch.backends import find_backend
from rules_executorch.program.inspect import inspect_program
from rules_executorch.records.manifest import Manifest, read_manifest

PROGRAMS = Path(__file__).parents[2] / "models"
PREFIX = "tiny_llama_all_devices_on_"

GENERATION = [("int64", 2), ("int64", 1)], ("float32", [1, 1, 288])
IMAGES = [("float32", 4)], ("float32", [1, 4])

# Device: the delegate as the runtime names it, the least share of operators it takes, the form.
EXPECTED: dict[str, tuple[str | None, float, Any]] = {
    "android_arm64_vulkan": ("VulkanBackend", 0.9, GENERATION),
    "android_arm64_xnnpack": ("XnnpackBackend", 0.3, GENERATION),
    "cortex_m55": (None, 0, IMAGES),
    "ethos_u55_128": ("EthosUBackend", 0.9, IMAGES),
    "ethos_u55_256": ("EthosUBackend", 0.9, IMAGES),
    "ethos_u65_256": ("EthosUBackend", 0.9, IMAGES),
    "ethos_u85_256": ("EthosUBackend", 0.9, IMAGES),
    "host_arm64_xnnpack": ("XnnpackBackend", 0.3, GENERATION),
    "host_x86_64_openvino": ("OpenvinoBackend", 1, GENERATION),
    "host_x86_64_xnnpack": ("XnnpackBackend", 0.3, GENERATION),
    "ios_arm64_coreml_fp16": ("CoreMLBackend", 1, GENERATION),
    "ios_arm64_coreml_fp16_ne": ("CoreMLBackend", 1, GENERATION),
    "ios_arm64_coreml_fp32": ("CoreMLBackend", 1, GENERATION),
    "ios_arm64_coreml_int8": ("CoreMLBackend", 1, GENERATION),
    "ios_arm64_xnnpack": ("XnnpackBackend", 0.3, GENERATION),
    "macos_arm64_coreml_fp16": ("CoreMLBackend", 1, GENERATION),
    "macos_arm64_coreml_fp32": ("CoreMLBackend", 1, GENERATION),
    "macos_arm64_coreml_int8": ("CoreMLBackend", 1, GENERATION),
    "macos_arm64_mlx": ("MLXBackend", 1, GENERATION),
    "portable": (None, 0, GENERATION),
    "tosa_fp32": ("TOSABackend", 0.8, GENERATION),
    "tosa_int8": ("TOSABackend", 0.9, IMAGES),
    "webgpu": ("VulkanBackend", 0.9, GENERATION),
}


def manifest(device: str) -> Manifest:
    return read_manifest(str(PROGRAMS / f"{PREFIX}{device}.manifest.json"))


def program(device: str) -> Path:
    return PROGRAMS / f"{PREFIX}{device}.pte"


def test_every_program_was_built() -> None:
    built = {path.stem.removeprefix(PREFIX) for path in PROGRAMS.glob(f"{PREFIX}*.pte")}
    assert built == set(EXPECTED)


@pytest.mark.parametrize("device", EXPECTED)
def test_the_program_has_the_delegate_and_the_tensors(device: str) -> None:
    delegate, share, (inputs, output) = EXPECTED[device]
    info = inspect_program(str(program(device)))
    method = info.methods["forward"]
    assert set(method.delegates) == ({delegate} if delegate else set())
    assert [(tensor.dtype, len(tensor.shape)) for tensor in method.inputs] == inputs
    assert [(tensor.dtype, tensor.shape) for tensor in method.outputs] == [output]
    assert manifest(device).methods["forward"].delegation.share >= share


@pytest.mark.parametrize("device", EXPECTED)
def test_the_manifest_is_valid_and_no_patch_was_left_out(device: str) -> None:
    written = manifest(device).lower
    backend = find_backend(written.backend)
    assert written.patches.skipped == {}
    assert {patch.name for patch in backend.patches} <= set(written.patches.active)
    calibrated = written.calibration is not None
    assert calibrated == (device in ("cortex_m55", "tosa_int8") or device.startswith("ethos"))


def test_weights_of_eight_bits_make_a_smaller_program() -> None:
    sizes = {
        name: manifest(f"ios_arm64_coreml_{name}").program.bytes
        for name in ("fp32", "fp16", "int8")
    }
    assert sizes["int8"] < sizes["fp16"] < sizes["fp32"]


def test_a_webgpu_program_is_a_vulkan_program() -> None:
    assert program("android_arm64_vulkan").read_bytes() == program("webgpu").read_bytes()


@pytest.mark.parametrize(
    "devices",
    [
        ("ios_arm64_coreml_fp16", "macos_arm64_coreml_fp16"),
        ("android_arm64_xnnpack", "host_arm64_xnnpack", "host_x86_64_xnnpack", "ios_arm64_xnnpack"),
    ],
    ids=["coreml", "xnnpack"],
)
def test_devices_that_agree_have_the_same_program(devices: tuple[str, ...]) -> None:
    assert len({program(device).read_bytes() for device in devices}) == 1


def test_cpus_have_the_operators_of_the_llm_extension_and_others_do_not() -> None:
    calls = {
        device
        for device in EXPECTED
        if any(name.startswith("llama::") for name in manifest(device).methods["forward"].operators)
    }
    assert calls == {device for device in EXPECTED if device.endswith("_xnnpack")}
