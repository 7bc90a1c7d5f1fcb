"""Quantized weights in delegates: computed by kernels of the backend's own, not dequantized."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import tiny_programs

from rules_executorch.backends import find_backend
from rules_executorch.export.options import Quantization

LLAMA = tiny_programs.LLAMA | {"num_hidden_layers": 1}

KERNELS = {
    ("coreml", "4w"): [b"constexpr_blockwise_shift_scale"],
    ("coreml", "8w"): [b"constexpr_blockwise_shift_scale"],
    ("mlx", "4w"): [],
    ("mlx", "8w"): [],
    ("vulkan", "4w"): [b"et_vk.linear_q4gsw", b"et_vk.embedding_q4gsw"],
    ("vulkan", "8da4w"): [b"et_vk.linear_dq8ca_q4gsw"],
    ("webgpu", "4w"): [b"et_vk.linear_q4gsw", b"et_vk.embedding_q4gsw"],
}
"""What the delegates of a backend call for a scheme; MLX numbers its operators."""


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tiny_programs.Exported]:
    """An export by scheme, with embeddings in the same one if they may."""
    made = {}
    for scheme in sorted({scheme for _, scheme in KERNELS}):
        embedding = None if scheme.startswith("8da") else scheme
        quantization = Quantization(scheme, group_size=32, embedding=embedding)
        options = dataclasses.replace(tiny_programs.GENERATION, quantization=quantization)
        folder = tmp_path_factory.mktemp(f"llama_{scheme}")
        made[scheme] = tiny_programs.export(folder, LLAMA, options)
    return made


@pytest.mark.parametrize(("backend", "scheme"), list(KERNELS))
def test_weights_stay_quantized(
    exports: dict[str, tiny_programs.Exported], tmp_path: Path, backend: str, scheme: str
) -> None:
    path = tmp_path / "model.pte"
    lowered, info = tiny_programs.lower(exports[scheme], path, backend)
    counted = lowered.delegation["forward"]
    weights = 8 if scheme.startswith("8da") else 9
    # 8da: the inputs of layers are dequantized as well.
    assert counted.delegated["torchao::dequantize_affine"] == weights * (2 if weights == 8 else 1)
    assert not [name for name in counted.undelegated if name.startswith("torchao::")]
    program = path.read_bytes()
    for kernel in KERNELS[backend, scheme]:
        assert kernel in program
    if backend in ("vulkan", "webgpu"):
        assert b"dequantize_affine" not in program


def test_every_scheme_of_these_backends_is_tested() -> None:
    for name in ("coreml", "mlx", "vulkan"):
        backend = find_backend(name)
        assert {scheme for tested, scheme in KERNELS if tested == name} == set(backend.schemes)
        assert set(backend.embedding_schemes) <= set(backend.schemes)
