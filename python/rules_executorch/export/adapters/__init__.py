"""What turns a model into a module that can be exported: one kind of module for each interface.

For text generation it owns the cache, takes `(input_ids | inputs_embeds, cache_position)` and
returns logits, as the runner of ExecuTorch calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules_executorch.common.errors import UserError
from rules_executorch.export.layer_kinds import FULL, layer_kinds

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

STATIC, HYBRID = "static_cache", "hybrid_cache"

_NOT_TAKEN = frozenset({"indexed_attention"})
"""Kinds of layers with a static form that keeps more than is reserved here."""


def cache_kind(config: PreTrainedConfig) -> str:
    """The kind of cache that a config asks for: `static_cache` where every layer attends to every
    earlier position, `hybrid_cache` where some slide, or keep a state.

    Raises:
        UserError: it is no decoder-only model, or a layer is of a kind that has no static form.
    """
    from transformers.cache_utils import STATIC_LAYER_TYPE_MAPPING

    kinds = layer_kinds(config)
    unknown = sorted(kinds - set(STATIC_LAYER_TYPE_MAPPING) | kinds & _NOT_TAKEN)
    if kinds and not unknown:
        return STATIC if kinds == {FULL} else HYBRID
    architecture = ", ".join(config.architectures or ()) or config.model_type
    why = (
        f"there is no cache of fixed size for its layers ({', '.join(unknown)})"
        if unknown
        else "it is not a decoder-only model for text generation"
    )
    raise UserError(
        f"There is no adapter for {architecture}: {why}.",
        instead="Choose a decoder-only checkpoint, such as Llama, Qwen or Gemma.",
    )
