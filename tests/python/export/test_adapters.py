"""Adapters over several families: the exported graph gives the logits of the eager model.

The graph is run by torch as it was exported, without lowering, so a family costs seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import GEMMA, LLAMA, make_checkpoint
from transformers import LlamaConfig, LlamaForCausalLM

from rules_executorch.checkpoint.weights import open_weights
from rules_executorch.export.adapters import cache_kind
from rules_executorch.export.adapters.cache import cache_argument
from rules_executorch.export.generation import export_model
from rules_executorch.export.options import ExportOptions
from rules_executorch.lower.bind import bind_weights
from rules_executorch.run import parity

SMALL = {key: value for key, value in LLAMA.items() if key not in ("model_type", "architectures")}

FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("static_cache", LLAMA | {"attention_bias": True}),
    "qwen2": ("static_cache", SMALL | {"model_type": "qwen2"}),
    "qwen3": ("static_cache", SMALL | {"model_type": "qwen3", "head_dim": 24}),
    "phi3": (
        "static_cache",
        SMALL | {"model_type": "phi3", "sliding_window": None, "pad_token_id": 0},
    ),
    "gpt2": (
        "static_cache",
        {
            "model_type": "gpt2",
            "n_embd": 32,
            "n_layer": 2,
            "n_head": 4,
            "n_positions": 64,
            "vocab_size": 96,
        },
    ),
    "mistral, every layer slides": (
        "hybrid_cache",
        SMALL | {"model_type": "mistral", "sliding_window": 6, "tie_word_embeddings": False},
    ),
    "gemma2, soft caps and a window": (
        "hybrid_cache",
        GEMMA
        | {
            "model_type": "gemma2",
            "architectures": ["Gemma2ForCausalLM"],
            "final_logit_softcapping": 5.0,
            "attn_logit_softcapping": 5.0,
        },
    ),
    "gemma3": ("hybrid_cache", GEMMA),
    "lfm2, convolutions": (
        "hybrid_cache",
        SMALL | {"model_type": "lfm2", "layer_types": ["conv", "full_attention"]},
    ),
    "phi3, long rope": (
        "static_cache",
        SMALL
        | {
            "model_type": "phi3",
            "pad_token_id": 0,
            "max_position_embeddings": 64,
            "original_max_position_embeddings": 16,
            "rope_scaling": {
                "rope_type": "longrope",
                "long_factor": [2.0] * 8,
                "short_factor": [1.0] * 8,
            },
        },
    ),
    "falcon, ALiBi": (
        "static_cache",
        {
            "model_type": "falcon",
            "vocab_size": 96,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "multi_query": False,
            "alibi": True,
        },
    ),
    "deepseek_v2, latents and complex numbers": (
        "static_cache",
        SMALL
        | {
            "model_type": "deepseek_v2",
            "num_key_value_heads": 4,
            "q_lora_rank": 16,
            "kv_lora_rank": 16,
            "qk_nope_head_dim": 8,
            "qk_rope_head_dim": 8,
            "v_head_dim": 12,
            "n_routed_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 16,
            "n_shared_experts": 1,
            "first_k_dense_replace": 1,
            "n_group": 1,
            "topk_group": 1,
        },
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_exported_graph_equals_eager(tmp_path: Path, family: str) -> None:
    adapter, value = FAMILIES[family]
    checkpoint = make_checkpoint(tmp_path, value)
    config = checkpoint.config
    assert cache_kind(config) == adapter
    exported = export_model(config, ExportOptions(max_cache_len=24, max_seq_len=8))
    weights = open_weights([checkpoint.weights_path])
    bind_weights(exported.program, exported.signature, weights)
    module = exported.program.module(check_guards=False)

    def run(tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return module(input_ids=tokens, cache_position=positions)

    outcome = parity.compare(
        run,
        parity.Eager(config, weights, "float32", max_cache_len=24),
        exported.signature,
        tolerance=1e-4,
        window=parity.sliding_window(config),
    )
    assert outcome.failure() is None
    assert max(found.position for found in outcome.differences) == 23


def test_the_cache_is_handed_over_by_the_name_that_the_model_has_for_it() -> None:
    """By another name a model would take it too, and compute without."""
    pinned = LlamaForCausalLM(LlamaConfig(**SMALL))
    assert cache_argument(pinned) == "cache"

    class Earlier(LlamaForCausalLM):
        def forward(self, input_ids: Any = None, past_key_values: Any = None, **more: Any) -> Any:
            raise NotImplementedError

    assert cache_argument(Earlier(LlamaConfig(**SMALL))) == "past_key_values"
