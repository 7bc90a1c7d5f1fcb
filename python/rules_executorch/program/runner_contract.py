"""The constant methods that ExecuTorch's LLM runner reads.

Names and meanings are those of `extension/llm/runner/constants.h` and `llm_runner_helper.cpp` of
ExecuTorch: the runner reads `get_eos_ids` (every value ends the generation) and ignores the
singular form.
"""

from __future__ import annotations

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
