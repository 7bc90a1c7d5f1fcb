"""ExecuTorch's attention and cache operators: the same logits, in a program that runs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from conftest import GEMMA, LLAMA, Checkpoint, build, make_checkpoint

from rules_executorch.checkpoint.weights import open_weights
from rules_executorch.common.errors import UserError
from rules_executorch.export.build import build_model, load_weights
from rules_executorch.export.choices import CUSTOM_KV_CACHE, CUSTOM_SDPA
from rules_executorch.export.generation import export_model
from rules_executorch.export.options import ExportOptions
from rules_executorch.lower.options import LowerOptions
from rules_executorch.run.parity import Eager, RuntimeProgram, compare, sliding_window

BOTH = (CUSTOM_KV_CACHE, CUSTOM_SDPA)


@pytest.mark.parametrize(
    ("config", "ops"),
    [(LLAMA, (CUSTOM_SDPA,)), (LLAMA, (CUSTOM_KV_CACHE,)), (GEMMA, BOTH)],
    ids=["sdpa", "kv_cache", "sliding_window"],
)
def test_exported_logits_equal_eager(tmp_path: Path, config: dict, ops: tuple[str, ...]) -> None:
    """Around a window of 8 positions and towards the end of the cache.

    Not to the very end: torch traces a dynamic length as two positions or more, and the exported
    module asserts it. The lowered program does not, and the test below goes through all of it.
    """
    checkpoint = make_checkpoint(tmp_path, config)
    weights = open_weights([checkpoint.weights_path])
    eager = Eager(checkpoint.config, weights, "float32")
    ids = torch.arange(32)[None] % 100
    expected = eager.logits(ids, range(32))

    exported = export_model(checkpoint.config, ExportOptions(max_cache_len=32, custom_ops=ops))
    model = build_model(checkpoint.config, "float32")
    load_weights(model, weights, "float32")
    for name, tensor in exported.program.state_dict.items():
        tensor.data = model.state_dict()[name.removeprefix("model.")].data
    program = exported.program.module(check_guards=False)
    start = 0
    for end in (5, 7, 8, 9, 20, *range(21, 32)):
        logits = program(input_ids=ids[:, start:end], cache_position=torch.arange(start, end))
        torch.testing.assert_close(logits[:, -1], expected[:, end - 1], atol=1e-5, rtol=1e-4)
        start = end


def test_program_runs_in_the_runtime(workspace: Path, gemma: Checkpoint) -> None:
    """One key and value head, whose cache torch may lay out in more than one way."""
    options = ExportOptions(max_cache_len=32, custom_ops=BOTH)
    built = build(workspace / "gemma_custom", gemma, options, LowerOptions(backend="xnnpack"))
    forward = built.info.methods["forward"]
    assert forward.operators["llama::custom_sdpa.out"] == GEMMA["num_hidden_layers"]
    assert forward.operators["llama::update_cache.out"] == 2 * GEMMA["num_hidden_layers"]
    assert built.info.constants["use_sdpa_with_kv_cache"] is True
    assert built.signature.cache.kv_heads == (1, 1)
    assert built.signature.cache.head_dim == (8, 8)

    parity = compare(
        RuntimeProgram(built.path),
        Eager(gemma.config, open_weights([gemma.weights_path]), "float32"),
        built.signature,
        tolerance=1e-3,
        window=sliding_window(gemma.config),
    )
    assert parity.failure() is None


def test_an_attention_that_caps_its_scores_is_refused(tmp_path: Path) -> None:
    capped = GEMMA | {
        "architectures": ["Gemma2ForCausalLM"],
        "model_type": "gemma2",
        "attn_logit_softcapping": 5.0,
    }
    checkpoint = make_checkpoint(tmp_path, capped)
    with pytest.raises(UserError) as refused:
        export_model(checkpoint.config, ExportOptions(max_cache_len=8, custom_ops=BOTH))
    assert "Gemma2ForCausalLM, which caps its attention scores" in str(refused.value)
    assert "custom_ops = []" in str(refused.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (ExportOptions(max_cache_len=8, custom_ops=("sdpa",)), "sdpa.*custom_kv_cache"),
        (ExportOptions(max_cache_len=8, custom_ops=BOTH, batch_size=2), "batch_size is 2"),
    ],
)
def test_refusals(llama: Checkpoint, options: ExportOptions, says: str) -> None:
    with pytest.raises(UserError, match=says):
        export_model(llama.config, options)
