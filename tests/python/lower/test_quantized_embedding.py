"""Quantized embeddings: looked up by the runtime's own kernels, small, and right."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from conftest import DESCRIPTION, LLAMA, Built, Checkpoint, build

from rules_executorch.backends.passes.quantized_embedding import pack_4bit
from rules_executorch.checkpoint.weights import open_weights
from rules_executorch.export.options import ExportOptions, Quantization
from rules_executorch.lower.options import LowerOptions
from rules_executorch.program.inspect import inspect_program
from rules_executorch.records.describe import Inputs, make_manifest
from rules_executorch.records.manifest import QuantizedEntry
from rules_executorch.records.report import render_report
from rules_executorch.run.parity import Eager, RuntimeProgram, compare

MATRIX_BYTES = LLAMA["vocab_size"] * LLAMA["hidden_size"] * 4
"""Of the embedding in float32."""


def lowered(
    folder: Path, checkpoint: Checkpoint, backend: str, quantization: Quantization | None
) -> Built:
    options = ExportOptions(max_cache_len=16, max_seq_len=4, quantization=quantization)
    return build(folder, checkpoint, options, LowerOptions(backend=backend))


def check_parity(built: Built, tolerance: float) -> None:
    weights = open_weights([built.checkpoint.weights_path])
    eager = Eager(built.checkpoint.config, weights, "float32", built.signature.quantized)
    program = RuntimeProgram(built.path)
    assert compare(program, eager, built.signature, tolerance=tolerance).failure() is None


@pytest.fixture(scope="module")
def plain(workspace: Path, llama: Checkpoint) -> Built:
    return lowered(workspace / "plain_embedding", llama, "portable", None)


@pytest.mark.parametrize(
    ("scheme", "operator", "row_bytes"),
    [("4w", "embedding_4bit", 64 // 2 + 2 * 4), ("8w", "embedding_byte", 64 + 4)],
)
def test_the_embedding_alone(
    workspace: Path, llama: Checkpoint, plain: Built, scheme: str, operator: str, row_bytes: int
) -> None:
    """The head was tied to it: it keeps its own values, and only the embedding shrinks."""
    quantization = Quantization(None, embedding=scheme)
    built = lowered(workspace / f"embedding_{scheme}", llama, "portable", quantization)
    operators = built.info.methods["forward"].operators
    assert operators[f"quantized_decomposed::{operator}.out"] == 1
    assert "aten::embedding.out" not in operators
    check_parity(built, 1e-4)
    stored = LLAMA["vocab_size"] * row_bytes
    grown = Path(built.path).stat().st_size - Path(plain.path).stat().st_size
    # The head, which the checkpoint ties to the embedding, has a matrix of its own now.
    assert abs(grown - stored) < 2_000


def test_embedding_and_layers(workspace: Path, llama: Checkpoint, plain: Built) -> None:
    quantization = Quantization("8da4w", embedding="4w")
    built = lowered(workspace / "embedding_layers", llama, "xnnpack", quantization)
    counted = built.lowered.delegation["forward"]
    assert counted.undelegated["quantized_decomposed::embedding_4bit"] == 1
    assert not [name for name in counted.undelegated if name.startswith("torchao::")]
    assert Path(built.path).stat().st_size < Path(plain.path).stat().st_size - MATRIX_BYTES
    check_parity(built, 0.05)

    info = inspect_program(built.path)
    paths = [built.checkpoint.config_path, built.exported_path]
    inputs = Inputs(*paths, [built.checkpoint.weights_path], built.path)
    options = LowerOptions(backend="xnnpack")
    manifest = make_manifest(inputs, built.signature, DESCRIPTION, options, built.lowered, info)
    found = manifest.quantization
    assert found is not None
    assert found.untied == {"lm_head.weight": "model.embed_tokens.weight"}
    assert found.quantized["model.embed_tokens.weight"] == QuantizedEntry("4w", 32)
    assert found.quantized["lm_head.weight"] == QuantizedEntry("8da4w", 32)
    assert "one matrix in the checkpoint and two here" in render_report(manifest)


def test_packing() -> None:
    """The layout of the kernel: even columns in the high half, from 0 for -8."""
    packed = pack_4bit(torch.tensor([[-8, 7, 0, -1]], dtype=torch.int8))
    assert packed.tolist() == [[0x0F, 0x87]]
