"""The constant methods that ExecuTorch's LLM runner reads.

Names and meanings are those of `extension/llm/runner/constants.h` and `llm_runner_helper.cpp` of
ExecuTorch: the runner reads `get_eos_ids` (every value ends the generation) and ignores the
singular form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MAX_SEQ_LEN = "get_max_seq_len"
MAX_CONTEXT_LEN = "get_max_context_len"
DYNAMIC_SHAPE = "enable_dynamic_shape"
KV_CACHE = "use_kv_cache"
SDPA_WITH_KV_CACHE = "use_sdpa_with_kv_cache"
EOS_IDS = "get_eos_ids"
BOS_ID = "get_bos_id"
VOCAB_SIZE = "get_vocab_size"

LISTS = frozenset({EOS_IDS})
"""Methods whose value is a list even where it has one entry."""


def constant_methods(
    signature: Mapping[str, Any], description: Mapping[str, Any]
) -> dict[str, Any]:
    """Gives the constant methods of a program for text generation.

    Args:
        signature: of the export.
        description: of the model, `model.json`.

    Returns:
        Method name to value: bool, int or list of int. A model without a beginning-of-sequence
        token has no `get_bos_id`, and one without an end has no `get_eos_ids`. A program without a
        cache has none of them.
    """
    if signature["cache"] is None:
        return {}
    methods: dict[str, Any] = {
        MAX_SEQ_LEN: signature["max_seq_len"],
        MAX_CONTEXT_LEN: signature["cache"]["max_cache_len"],
        DYNAMIC_SHAPE: bool(signature["dynamic_dims"]),
        KV_CACHE: True,
        SDPA_WITH_KV_CACHE: "custom_sdpa" in signature["options"]["custom_ops"],
        VOCAB_SIZE: signature["vocab_size"],
    }
    if description.get("eos_ids"):
        methods[EOS_IDS] = list(description["eos_ids"])
    if description.get("bos_id") is not None:
        methods[BOS_ID] = description["bos_id"]
    return methods
