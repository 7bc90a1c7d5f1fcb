"""Models whose layers all attend to every earlier position.

The module is transformers' own `TorchExportableModuleWithStaticCache`
(`transformers.integrations.executorch`), with the choice of the last position's logits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from transformers import GenerationConfig
from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

from rules_executorch.export.adapters.cache import (
    cache_argument,
    check_last_position,
    last_logits,
    layer_kinds,
)

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

    from rules_executorch.export.plan import GenerationPlan

TAKES = "decoder-only models with full attention in every layer"


class LastLogitsWithStaticCache(TorchExportableModuleWithStaticCache):
    """The same module, returning logits of shape (batch, 1, vocabulary)."""

    cache_argument: str

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        cache_position: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Writes the inputs into the cache from the first cache position on.

        Args:
            input_ids: int64, (batch, sequence); or
            inputs_embeds: (batch, sequence, hidden size).
            cache_position: int64, (sequence,): consecutive positions.

        Returns:
            Logits after the last position, (batch, 1, vocabulary).
        """
        for layer in self.static_cache.layers:
            layer.cumulative_length.copy_(cache_position[0])
        return last_logits(
            self.model,
            self.static_cache,
            self.cache_argument,
            input_ids=input_ids,
            inputs_embeds=inputs_embeds,
        )


def accepts(config: PreTrainedConfig) -> bool:
    """Whether every layer has full attention."""
    return layer_kinds(config) == {"full_attention"}


def wrap(model: PreTrainedModel, plan: GenerationPlan) -> torch.nn.Module:
    """Wraps a model.

    Raises:
        UserError: the last position's logits are asked for and the model cannot give them alone.
    """
    if plan.logits == "last":
        check_last_position(model)
    # A checkpoint need not come with a generation config, and one it has need not name a cache.
    model.generation_config = GenerationConfig(use_cache=True, cache_implementation="static")
    kind = (
        LastLogitsWithStaticCache if plan.logits == "last" else TorchExportableModuleWithStaticCache
    )
    module = kind(model, plan.batch_size, plan.max_cache_len, torch.device("cpu"))
    module.cache_argument = cache_argument(model)
    return module.eval()
