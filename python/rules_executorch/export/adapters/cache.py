"""What the adapters have in common: the kinds of layers, and logits of the last position."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import torch

from rules_executorch.common.errors import UserError
from rules_executorch.export.build import model_class

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel


def layer_kinds(config: PreTrainedConfig) -> set[str]:
    """The kinds of layers a static cache of this config would have, as transformers names them.

    Empty for a config whose model has no decoder-only form, or whose forward cannot be traced whole
    with such a cache.
    """
    from transformers.cache_utils import get_layer_types_and_kwargs

    model = model_class(config)
    if model is None or config.is_encoder_decoder or config.get_text_config() is not config:
        return set()
    if not model._can_compile_fullgraph:
        return set()
    try:
        return set(get_layer_types_and_kwargs(config)[0])
    except AttributeError:
        # A kind of layer whose settings the config does not have.
        return set(config.layer_types)


def check_last_position(model: PreTrainedModel) -> None:
    """Checks that a model can give the logits of the last position without those of the others.

    Raises:
        UserError: its forward has no `logits_to_keep`.
    """
    if "logits_to_keep" not in inspect.signature(model.forward).parameters:
        raise UserError(
            f"{type(model).__name__} computes the logits of every position.",
            instead='Write logits = "all".',
        )


def cache_argument(model: PreTrainedModel) -> str:
    """What a model calls its argument for the cache.

    transformers 5.24 calls it `cache`, and `past_key_values` before; a model takes the other one as
    well, and then computes without.
    """
    parameters = inspect.signature(model.forward).parameters
    return "cache" if "cache" in parameters else "past_key_values"


def last_logits(
    model: PreTrainedModel, cache: Any, argument: str, **inputs: torch.Tensor | None
) -> torch.Tensor:
    """Runs a model on a static cache and returns the logits of the last position only.

    The hidden states are cut before the output head, so no memory is planned for other logits.

    Args:
        model: a causal language model.
        cache: its static cache, whose lengths are set to the first cache position.
        argument: what `cache_argument` says of the model; a tracer cannot ask for it.
        **inputs: `input_ids`, int64 (batch, sequence), or `inputs_embeds`, (batch, sequence,
            hidden size).

    Returns:
        Logits, (batch, 1, vocabulary).
    """
    return model(
        **inputs, **{argument: cache}, attention_mask=None, use_cache=True, logits_to_keep=1
    ).logits
