"""The kinds of layers that the cache of a model has, known from its config.

Rests on `transformers.cache_utils`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules_executorch.export.build import model_class

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

SLIDING, CHUNKED, FULL = "sliding_attention", "chunked_attention", "full_attention"
RECURRENT = frozenset({"linear_attention", "hybrid", "hybrid_sliding"})
"""Kinds of layers that keep the state of a recurrence."""


def layer_kinds(config: PreTrainedConfig) -> set[str]:
    """The kinds of layers a static cache of this config would have, as transformers names them.

    Empty for a config whose model has no decoder-only form.
    """
    from transformers.cache_utils import get_layer_types_and_kwargs

    model = model_class(config)
    if model is None or config.is_encoder_decoder or config.get_text_config() is not config:
        return set()
    try:
        return set(get_layer_types_and_kwargs(config)[0])
    except AttributeError:
        # A kind of layer whose settings the config does not have.
        return set(config.layer_types)
