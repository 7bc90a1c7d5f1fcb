"""ExecuTorch's own attention and cache operators in place of torch's.

`custom_sdpa` attends to the positions that are filled, where torch's attention over a static cache
computes all of them and masks most; `custom_kv_cache` writes new keys and values into the cache in
place. Both are kernels of ExecuTorch's LLM extension (`executorch/extension/llm/custom_ops`:
`llama::custom_sdpa`, `llama::update_cache`), which an app has to link.

Inside a program the cache is laid out as those kernels want it, (batch, position, head, head
size), which is transformers' layout with the second and third dimension exchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from transformers import AttentionInterface
from transformers.cache_utils import StaticLayer
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, sdpa_mask

from rules_executorch.common.errors import UserError
from rules_executorch.export.adapters.cache import cache_argument, kept_tensors, reserve_cache
from rules_executorch.export.choices import CUSTOM_KV_CACHE, CUSTOM_SDPA
from rules_executorch.program.operator_libraries import load_llm_operators

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from rules_executorch.export.plan import GenerationPlan

HEADS_DIM = 2
"""Dimension of a stored cache that counts the key and value heads."""

_ATTENTION = "executorch_custom_sdpa"
_START = "cache_start"
"""Keyword under which models hand the first cache position to their attention and cache."""


class CustomCacheLayer(StaticLayer):
    """A layer of a static cache in the kernels' layout.

    Keys and values are (batch, max_cache_len, heads, head size). What `update` returns has
    transformers' layout, unless the attention is `custom_sdpa` too, which takes it as it is.
    """

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self, max_cache_len: int, *, in_place: bool, as_stored: bool) -> None:
        """Makes a layer.

        Args:
            max_cache_len: positions it holds.
            in_place: write with `llama::update_cache` rather than with torch's `index_copy_`.
            as_stored: return the cache in the layout it is stored in.
        """
        super().__init__(max_cache_len)
        self._in_place = in_place
        self._as_stored = as_stored

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Reserves the cache for states of (batch, heads, positions, head size)."""
        super().lazy_initialization(key_states, value_states)
        # Made anew rather than transposed: with one head, a transposed tensor counts as contiguous
        # for torch, and its strides still tell the kernels another order of dimensions.
        self.keys = _exchanged(self.keys)
        self.values = _exchanged(self.values)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Writes states, (batch, heads, sequence, head size), and returns the whole cache."""
        start = kwargs["kwargs"][_START]
        length = key_states.shape[2]
        for cache, states in ((self.keys, key_states), (self.values, value_states)):
            states = states.transpose(1, 2)
            if self._in_place:
                torch.ops.llama.update_cache(states.contiguous(), cache, start)
            else:
                positions = torch.arange(length) + self.cumulative_length
                cache.index_copy_(1, positions, states)
        if self._as_stored:
            return self.keys, self.values
        return self.keys.transpose(1, 2), self.values.transpose(1, 2)


def _exchanged(cache: torch.Tensor) -> torch.Tensor:
    batch, heads, positions, size = cache.shape
    cache = torch.zeros(batch, positions, heads, size, dtype=cache.dtype, device=cache.device)
    torch._dynamo.mark_static_address(cache)
    return cache


def _attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """transformers' attention function over `llama::custom_sdpa`.

    Args:
        module: the attention layer.
        query: (batch, heads, sequence, head size).
        key: the cache, as stored.
        value: the cache, as stored.
        attention_mask: None for causal attention; else additive, (sequence, max_cache_len).
        scaling: factor of the scores.
        **kwargs: holds the first cache position.

    Returns:
        (batch, sequence, heads, head size), and no weights.
    """
    output = torch.ops.llama.custom_sdpa(
        query.transpose(1, 2).contiguous(),
        key,
        value,
        kwargs[_START],
        attention_mask,
        0.0,
        attention_mask is None,
        scaling,
    )
    return output, None


def _mask(
    local_size: int | None = None, dtype: torch.dtype = torch.float32, **kwargs: Any
) -> torch.Tensor | None:
    """transformers' mask function: none for causal layers, additive for sliding windows."""
    if local_size is None:
        return None
    kwargs["allow_is_causal_skip"] = False
    allowed = sdpa_mask(local_size=local_size, **kwargs)[0, 0]
    return torch.zeros(allowed.shape, dtype=dtype).masked_fill(~allowed, float("-inf"))


AttentionInterface.register(_ATTENTION, _attention)
ALL_MASK_ATTENTION_FUNCTIONS.register(_ATTENTION, _mask)


def _take_attention(model: PreTrainedModel) -> None:
    """Puts `custom_sdpa` in the place of a model's attention.

    Raises:
        UserError: the model caps its attention scores, which the kernel does not, or does not let
            its attention be exchanged.
    """
    capped = getattr(model.config.get_text_config(), "attn_logit_softcapping", None) is not None
    try:
        model.set_attn_implementation(_ATTENTION)
    except ValueError as error:
        why = "does not let its attention be exchanged"
        raise _no_attention(model, "caps its attention scores" if capped else why) from error
    if capped:
        raise _no_attention(model, "caps its attention scores")


def _no_attention(model: PreTrainedModel, why: str) -> UserError:
    return UserError(
        f"custom_sdpa cannot compute {type(model).__name__}, which {why}.",
        instead="Write custom_ops = [].",
    )


class CustomOpsModule(torch.nn.Module):
    """A model on a static cache, with ExecuTorch's operators.

    Takes the same inputs and gives the same outputs as transformers'
    `TorchExportableModuleWithStaticCache`.
    """

    def __init__(self, model: PreTrainedModel, plan: GenerationPlan) -> None:
        """Wraps a model; its attention implementation is set to the operators asked for."""
        super().__init__()
        load_llm_operators()
        sdpa = CUSTOM_SDPA in plan.custom_ops
        self.model = model
        self.max_cache_len = plan.max_cache_len
        self.keep = 1 if plan.logits == "last" else 0
        # Before the attention is exchanged, for it cannot be run on tensors without values.
        reserved = reserve_cache(model, plan.batch_size, plan.max_cache_len)
        self.cache = reserved.cache
        self._mask = reserved.mask
        self._gives_positions = reserved.gives_positions
        self.cache_argument = cache_argument(model)
        if sdpa:
            _take_attention(model)
        in_place = CUSTOM_KV_CACHE in plan.custom_ops
        for index, layer in enumerate(self.cache.layers):
            if type(layer) is not StaticLayer or layer.k_head_dim != layer.v_head_dim:
                raise UserError(
                    f"custom_ops are for layers that keep keys and values, and layer {index} of "
                    f"{type(model).__name__} keeps something else.",
                    instead="Write custom_ops = [].",
                )
            custom = CustomCacheLayer(plan.max_cache_len, in_place=in_place, as_stored=sdpa)
            custom.lazy_initialization(layer.keys[:, :, :0], layer.values[:, :, :0])
            self.cache.layers[index] = custom
        for kept in kept_tensors(self.cache):
            self.register_buffer(kept.name, kept.tensor, persistent=False)

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
        start = cache_position[0].item()
        # The kernels index with it; tracing has to know that it stays inside of the cache.
        torch._check(start >= 0)
        torch._check(start + cache_position.shape[0] <= self.max_cache_len)
        for layer in self.cache.layers:
            layer.cumulative_length.copy_(cache_position[0])
        positions = {"position_ids": cache_position.unsqueeze(0)} if self._gives_positions else {}
        return self.model(
            input_ids=input_ids,
            inputs_embeds=inputs_embeds,
            attention_mask=self._mask,
            **{self.cache_argument: self.cache},
            use_cache=True,
            logits_to_keep=self.keep,
            **positions,
            **{_START: start},
        ).logits


def wrap(model: PreTrainedModel, plan: GenerationPlan) -> torch.nn.Module:
    """Wraps a model whose layers attend to all earlier positions or to a sliding window.

    Raises:
        UserError: see `CustomOpsModule`.
    """
    return CustomOpsModule(model, plan).eval()
