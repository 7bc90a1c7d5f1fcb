"""Tiny configurations of families of models, for the table of docs/models.md.

Small enough that a family costs seconds, and with what makes it one: windows shorter than the
cache, several experts, another rope, heads of a size of their own.
"""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Family:
    """One row of the table.

    Attributes:
        name: as people call it.
        model_type: transformers' name.
        task: what the checkpoint is for; the build has to find it out.
        config: values of the configuration.
        options: of the export.
    """

    name: str
    model_type: str
    task: str
    config: dict[str, Any]
    options: dict[str, Any]


FAMILIES: tuple[Family, ...] = (
    Family(
        name="llama",
        model_type="llama",
        task="text-generation",
        config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "vocab_size": 64,
            "max_position_embeddings": 64,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 0,
        },
        options={"max_cache_len": 24},
    ),
    Family(
        name="mistral",
        model_type="mistral",
        task="text-generation",
        config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "vocab_size": 64,
            "max_position_embeddings": 64,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 0,
            "sliding_window": 8,
        },
        options={"max_cache_len": 24},
    ),
    Family(
        name="mixtral",
        model_type="mixtral",
        task="text-generation",
        config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "vocab_size": 64,
            "max_position_embeddings": 64,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 0,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
        },
        options={"max_cache_len": 24},
    ),
    Family(
        name="qwen2",
        model_type="qwen2",
        task="text-generation",
        config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "vocab_size": 64,
            "max_position_embeddings": 64,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 0,
        },
        options={"max_cache_len": 24},
    ),
    Family(
        name="qwen3",
        model_type="qwen3",
        task="text-generation",
        config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "vocab_size": 64,
            "max_position_embeddings": 64,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 0,
            "head_dim": 16,
        },
        options={"max_cache_len": 24},
    ),
    Family(
        name="qwen3-moe",
        model_type="qwen3_moe",
        task="text-generation",
        config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "vocab_size": 64,
            "max_position_embeddings": 64,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 0,
            "head_dim": 16,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 24,
        },
        options={"max_cache_len": 24},
    ),
    Family(
        name="gemma",
        model_type="gemma",
        task="text-generation",
        config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "vocab_size": 64,
            "max_position_embeddings": 64,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 0,
            "head_dim": 16,
        },
        options={"max_cache_len": 24},
    ),
    Family(
        name="bert",
        model_type="bert",
        task="text-classification",
        config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "vocab_size": 64,
            "max_position_embeddings": 32,
            "pad_token_id": 0,
        },
        options={},
    ),
    Family(
        name="albert",
        model_type="albert",
        task="fill-mask",
        config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "vocab_size": 64,
            "max_position_embeddings": 32,
            "pad_token_id": 0,
            "embedding_size": 16,
        },
        options={},
    ),
    Family(
        name="distilbert",
        model_type="distilbert",
        task="question-answering",
        config={
            "dim": 32,
            "hidden_dim": 48,
            "n_layers": 2,
            "n_heads": 4,
            "vocab_size": 64,
            "max_position_embeddings": 32,
            "pad_token_id": 0,
        },
        options={},
    ),
    Family(
        name="roberta",
        model_type="roberta",
        task="text-classification",
        config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "vocab_size": 64,
            "max_position_embeddings": 34,
            "pad_token_id": 1,
        },
        options={},
    ),
    Family(
        name="xlm-roberta",
        model_type="xlm-roberta",
        task="token-classification",
        config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "vocab_size": 64,
            "max_position_embeddings": 34,
            "pad_token_id": 1,
        },
        options={},
    ),
    Family(
        name="mpnet",
        model_type="mpnet",
        task="feature-extraction",
        config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "vocab_size": 64,
            "max_position_embeddings": 34,
            "pad_token_id": 1,
        },
        options={},
    ),
    Family(
        name="electra",
        model_type="electra",
        task="token-classification",
        config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "vocab_size": 64,
            "max_position_embeddings": 32,
            "pad_token_id": 0,
            "embedding_size": 16,
        },
        options={},
    ),
    Family(
        name="deberta-v2",
        model_type="deberta-v2",
        task="text-classification",
        config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "vocab_size": 64,
            "max_position_embeddings": 32,
            "pad_token_id": 0,
            "relative_attention": True,
            "position_buckets": 8,
            "pos_att_type": ["p2c", "c2p"],
            "norm_rel_ebd": "layer_norm",
            "share_att_key": True,
            "type_vocab_size": 0,
            "position_biased_input": False,
        },
        options={},
    ),
)
