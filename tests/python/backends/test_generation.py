"""A program that generates text, lowered for each backend that can hold one."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import tiny_programs

from rules_executorch.lower.pipeline import Lowered
from rules_executorch.program.info import TensorInfo


@dataclasses.dataclass(frozen=True)
class Expected:
    """What a backend makes of the tiny Llama.

    Attributes:
        dynamic: whether the sequence length varies.
        runtime_name: as the program names the backend.
        undelegated: the operators it leaves, None for any.
        patches: that have to be in force.
    """

    dynamic: bool
    runtime_name: str
    share: float
    patches: tuple[str, ...] = ()


EXPECTED = {
    "coreml": Expected(True, "CoreMLBackend", 1.0, ("canonical_packages",)),
    "mlx": Expected(True, "MLXBackend", 1.0, ("generated_mlx_serialization",)),
    "openvino": Expected(False, "OpenvinoBackend", 1.0),
    "tosa": Expected(False, "TOSABackend", 0.8, ("ordered_tosa_partitions",)),
    "vulkan": Expected(True, "VulkanBackend", 0.9, ("shared_vulkan_patterns",)),
    "webgpu": Expected(True, "VulkanBackend", 0.9, ("shared_vulkan_patterns",)),
}


@pytest.fixture(scope="module", params=EXPECTED)
def lowered(
    request: pytest.FixtureRequest, workspace: Path
) -> tuple[str, Expected, tiny_programs.Exported, Path, Lowered, Any]:
    expected = EXPECTED[request.param]
    exported = request.getfixturevalue("dynamic_llama" if expected.dynamic else "llama")
    path = workspace / f"{request.param}.pte"
    done, info = tiny_programs.lower(exported, path, request.param)
    return request.param, expected, exported, path, done, info


def test_the_backend_takes_the_graph(lowered: Any) -> None:
    _, expected, _, _, done, info = lowered
    assert set(info.methods["forward"].delegates) == {expected.runtime_name}
    assert done.delegation["forward"].share() >= expected.share
    assert set(expected.patches) <= set(done.patches.active) and not done.patches.skipped


def test_inputs_and_outputs_are_those_of_the_export(lowered: Any) -> None:
    _, expected, _, _, _, info = lowered
    varies = expected.dynamic
    method = info.methods["forward"]
    assert method.inputs == [
        TensorInfo("int64", [1, 4], varies),
        TensorInfo("int64", [4], varies),
    ]
    assert method.outputs == [TensorInfo("float32", [1, 1, 128], False)]
    assert info.constants["get_max_context_len"] == 16
    assert info.constants["enable_dynamic_shape"] is varies


def test_the_runtime_reads_the_program_without_the_backend(lowered: Any) -> None:
    from executorch.runtime import Runtime

    *_, path, _, _ = lowered
    program = Runtime.get().load_program(path)
    assert "forward" in program.method_names
    assert program.metadata("forward").num_inputs() == 2


def test_another_process_writes_the_same_bytes(lowered: Any) -> None:
    name, _, exported, path, _, _ = lowered
    other = path.with_name(f"{name}.again.pte")
    assert tiny_programs.lower_elsewhere(exported, other, name) == path.read_bytes()
