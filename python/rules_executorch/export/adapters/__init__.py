"""What turns a model into a module that can be exported, one file for each kind of cache.

An adapter owns the cache, takes `(input_ids | inputs_embeds, cache_position)` and returns logits,
as the runner of ExecuTorch calls it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

from rules_executorch.common.errors import UserError
from rules_executorch.export.adapters import hybrid_cache, static_cache

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel

    from rules_executorch.export.plan import GenerationPlan


@dataclasses.dataclass(frozen=True)
class Adapter:
    """One kind of cache.

    Attributes:
        name: as the signature and the manifest give it.
        takes: what it is for, in a few words, for messages.
        accepts: whether it fits a config.
        wrap: makes the module to export.
    """

    name: str
    takes: str
    accepts: Callable[[PreTrainedConfig], bool]
    wrap: Callable[[PreTrainedModel, GenerationPlan], torch.nn.Module]


ADAPTERS: tuple[Adapter, ...] = (
    Adapter("static_cache", static_cache.TAKES, static_cache.accepts, static_cache.wrap),
    Adapter("hybrid_cache", hybrid_cache.TAKES, hybrid_cache.accepts, hybrid_cache.wrap),
)
"""All adapters; the first that accepts a config is taken."""


def choose_adapter(config: PreTrainedConfig) -> Adapter:
    """Finds the adapter for a config.

    Raises:
        UserError: there is none; names the architecture and what the adapters take.
    """
    for adapter in ADAPTERS:
        if adapter.accepts(config):
            return adapter
    architecture = ", ".join(config.architectures or ()) or config.model_type
    kinds = sorted(set(getattr(config, "layer_types", None) or ()))
    layers = f" (layers: {', '.join(kinds)})" if kinds else ""
    taken = "; ".join(f"{adapter.name} takes {adapter.takes}" for adapter in ADAPTERS)
    raise UserError(
        f"No adapter fits the architecture {architecture}{layers}: {taken}.",
        instead="Choose a decoder-only checkpoint of one of these kinds.",
    )
