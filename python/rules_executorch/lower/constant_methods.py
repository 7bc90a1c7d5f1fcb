"""The constant methods that a program for text generation gets, for the runner that reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rules_executorch.program import runner_contract as contract

if TYPE_CHECKING:
    from rules_executorch.checkpoint.description import ModelDescription
    from rules_executorch.export.signature import Signature


def constant_methods(signature: Signature, description: ModelDescription) -> dict[str, Any]:
    """Gives the constant methods of a program for text generation.

    Args:
        signature: of the export.
        description: of the model.

    Returns:
        Method name to value: bool, int or list of int. A model without a beginning-of-sequence
        token has no `get_bos_id`, and one without an end has no `get_eos_ids`. A program without a
        cache has none of them.
    """
    if signature.cache is None:
        return {}
    methods: dict[str, Any] = {
        contract.MAX_SEQ_LEN: signature.max_seq_len,
        contract.MAX_CONTEXT_LEN: signature.cache.max_cache_len,
        contract.DYNAMIC_SHAPE: bool(signature.dynamic_dims),
        contract.KV_CACHE: True,
        contract.SDPA_WITH_KV_CACHE: "custom_sdpa" in signature.options.custom_ops,
        contract.VOCAB_SIZE: signature.vocab_size,
    }
    if description.eos_ids:
        methods[contract.EOS_IDS] = list(description.eos_ids)
    if description.bos_id is not None:
        methods[contract.BOS_ID] = description.bos_id
    return methods
