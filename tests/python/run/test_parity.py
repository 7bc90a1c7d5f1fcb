"""Programs give the logits of the eager model, and a difference is reported."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from conftest import LLAMA, WIDE_HEADS, Built, build, make_checkpoint

from rules_executorch.checkpoint.weights import open_weights
from rules_executorch.export.options import ExportOptions
from rules_executorch.lower.options import LowerOptions
from rules_executorch.run import parity

PORTABLE = LowerOptions(backend="portable")


def compared(built: Built, tolerance: float = 1e-4, program=None) -> parity.Parity:
    eager = parity.Eager(
        built.checkpoint.config,
        open_weights([built.checkpoint.weights_path]),
        built.signature.dtype,
    )
    return parity.compare(
        program or parity.RuntimeProgram(built.path),
        eager,
        built.signature,
        tolerance=tolerance,
        window=parity.sliding_window(built.checkpoint.config),
    )


def test_xnnpack_program_equals_eager(llama_xnnpack: Built) -> None:
    outcome = compared(llama_xnnpack)
    assert outcome.failure() is None
    assert {31, 15, 14} <= {found.position for found in outcome.differences}
    assert len(outcome.steps) == 8


def test_sliding_window_before_at_and_after_the_window(gemma_portable: Built) -> None:
    outcome = compared(gemma_portable)
    assert outcome.failure() is None
    whole = {f.position for f in outcome.differences if f.walk == "whole cache"}
    assert {6, 7, 8, 9, 10, 30, 31} <= whole


def test_the_window_matters(gemma_portable: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison would notice a program that ignores the window."""
    config = gemma_portable.checkpoint.config
    config.sliding_window = 64
    eager = parity.Eager(config, open_weights([gemma_portable.checkpoint.weights_path]), "float32")
    outcome = parity.compare(
        parity.RuntimeProgram(gemma_portable.path),
        eager,
        gemma_portable.signature,
        tolerance=1e-4,
        window=8,
    )
    wrong = [found.position for found in outcome.differences if not found.fits()]
    assert wrong and min(wrong) >= 8
    assert "position" in outcome.failure()


def test_explicit_head_dim_all_logits_and_batch(workspace: Path) -> None:
    checkpoint = make_checkpoint(workspace / "wide", WIDE_HEADS)
    options = ExportOptions(max_cache_len=12, batch_size=2, logits="all")
    built = build(workspace / "wide_portable", checkpoint, options, PORTABLE)
    assert built.signature.cache.head_dim == (32,)
    assert built.signature.cache.kv_heads == (2,)
    outcome = compared(built)
    assert outcome.failure() is None
    assert {found.position for found in outcome.differences} == set(range(12))
    assert built.info.methods["forward"].outputs[0].shape == [2, 12, 320]


def test_embeddings_as_input_and_a_fixed_length(workspace: Path) -> None:
    config = LLAMA | {"num_hidden_layers": 1}
    checkpoint = make_checkpoint(workspace / "embeds", config)
    options = ExportOptions(
        max_cache_len=8, dynamic_seq_len=False, input_form="inputs_embeds", max_seq_len=2
    )
    built = build(workspace / "embeds_portable", checkpoint, options, PORTABLE)
    assert built.info.methods["forward"].inputs[0].shape == [1, 2, 64]
    assert not built.info.methods["forward"].inputs[0].dynamic
    assert built.info.constants["enable_dynamic_shape"] is False
    assert compared(built).failure() is None


def test_bfloat16_on_the_portable_kernels(workspace: Path) -> None:
    config = LLAMA | {"num_hidden_layers": 1, "dtype": "bfloat16"}
    checkpoint = make_checkpoint(workspace / "bf16", config, "bfloat16")
    options = ExportOptions(max_cache_len=8, dtype="auto")
    built = build(workspace / "bf16_portable", checkpoint, options, PORTABLE)
    assert built.signature.dtype == "bfloat16"
    assert compared(built, parity.DEFAULT_TOLERANCE["bfloat16"]).failure() is None


def test_a_wrong_logit_is_reported_with_its_position(llama_xnnpack: Built) -> None:
    program = parity.RuntimeProgram(llama_xnnpack.path)

    def wrong(tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        logits = program(tokens, positions)
        return logits + 0.5 if positions[-1] == 15 else logits

    failure = compared(llama_xnnpack, program=wrong).failure()
    assert "position 15" in failure and "0.5" in failure


def test_state_left_over_is_reported(llama_xnnpack: Built) -> None:
    program = parity.RuntimeProgram(llama_xnnpack.path)
    calls = []

    def drifting(tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        calls.append(positions)
        return program(tokens, positions) + 1e-6 * len(calls)

    assert "run again" in compared(llama_xnnpack, program=drifting).failure()


def test_nan_is_a_difference(llama_xnnpack: Built) -> None:
    outcome = compared(
        llama_xnnpack, program=lambda tokens, positions: torch.full((1, 1, 320), float("nan"))
    )
    assert outcome.failure() is not None


def test_another_greedy_token_is_reported() -> None:
    step = parity.Step(position=3, program_id=5, reference_id=6, margin=0.4, allowed=0.1)
    outcome = parity.Parity([], [step], True)
    assert "5" in outcome.failure() and not step.fits()
    assert dataclasses.replace(step, margin=0.05).fits()


@pytest.mark.parametrize(("length", "bound", "window"), [(32, 32, 8), (32, 5, None), (3, 1, 2)])
def test_chunks_fill_the_sequence(length: int, bound: int, window: int | None) -> None:
    chunks = list(parity._through(length, bound, window))
    assert sum(chunks) == length and max(chunks) <= bound and chunks[-1] == 1
