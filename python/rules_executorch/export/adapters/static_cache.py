"""Models for text generation on a static cache, whatever their layers keep.

For layers of full attention it traces to the program of transformers' own
`TorchExportableModuleWithStaticCache` (`transformers.integrations.executorch`), down to the names
of buffers. Beyond that it takes layers of every kind, gives the last position's logits alone, and
starts states from zeros where a call begins at position 0.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import torch

from rules_executorch.export.adapters.cache import (
    cache_argument,
    gives_last_position,
    kept_tensors,
    reserve_cache,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from rules_executorch.export.plan import GenerationPlan


class StaticCacheModule(torch.nn.Module):
    """A model that owns its cache, called with tokens and positions as the runner does it."""

    def __init__(self, model: PreTrainedModel, plan: GenerationPlan) -> None:
        """Wraps a model; see `reserve_cache`."""
        super().__init__()
        self.model = model
        reserved = reserve_cache(model, plan.batch_size, plan.max_cache_len)
        self.static_cache = reserved.cache
        self._mask = reserved.mask
        self._cache_argument = cache_argument(model)
        self._gives_positions = reserved.gives_positions
        self._last = plan.logits == "last"
        self._keeps = {"logits_to_keep": 1} if self._last and gives_last_position(model) else {}
        self._cuts = self._last and not self._keeps
        self._attending = [
            index
            for index, layer in enumerate(self.static_cache.layers)
            if getattr(layer, "keys", None) is not None
        ]
        self._states = []
        for kept in kept_tensors(self.static_cache):
            self.register_buffer(kept.name, kept.tensor, persistent=False)
            if kept.is_state:
                self._states.append(kept.tensor)

    cache_argument: str

    def give_positions(self) -> bool:
        """Says the positions to the model from now on; False where it was so or cannot be."""
        takes = "position_ids" in inspect.signature(self.model.forward).parameters
        changes = takes and not self._gives_positions
        self._gives_positions = takes
        return changes

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
            Logits, (batch, 1 or sequence, vocabulary).
        """
        assert cache_position is not None
        for index in self._attending:
            self.static_cache.layers[index].cumulative_length.copy_(cache_position[0])
        for state in self._states:
            state.copy_(torch.where(cache_position[0] == 0, torch.zeros_like(state), state))
        positions = {"position_ids": cache_position.unsqueeze(0)} if self._gives_positions else {}
        logits = self.model(
            input_ids=input_ids,
            inputs_embeds=inputs_embeds,
            attention_mask=self._mask,
            **{self._cache_argument: self.static_cache},
            use_cache=True,
            **positions,
            **self._keeps,
        ).logits
        return logits[:, -1:] if self._cuts else logits


def wrap(model: PreTrainedModel, plan: GenerationPlan) -> torch.nn.Module:
    """Wraps a model.

    Raises:
        UserError: see `reserve_cache`.
    """
    return StaticCacheModule(model, plan).eval()
