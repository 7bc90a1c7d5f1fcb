"""The cache of a model: layers of every kind that transformers has, reserved before tracing.

What a layer keeps (keys and values, a compressed latent, the last inputs of a convolution, the
state of a recurrence) and how large it is follows from the model: it is run once on tensors
without values, and each layer of transformers' `StaticCache` then knows its shapes.

Rests on `transformers.cache_utils`.
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import cache_utils
from transformers.cache_utils import (
    StaticCache,
    StaticLayer,
    StaticSlidingWindowLayer,
)

from rules_executorch.common.errors import UserError
from rules_executorch.export.complex_numbers import real_numbers_only
from rules_executorch.export.refusals import first_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from transformers import PreTrainedModel


@dataclasses.dataclass(frozen=True)
class Reserved:
    """A cache, and how a model wants to be called on it.

    Attributes:
        cache: its tensors reserved and zero.
        gives_positions: whether the call has to say the positions. Most models count from the
            cache's length; OPT counts by the mask.
        mask: None; or, for a model that counts the positions of keys by its mask (ALiBi in Falcon),
            int64 ones, (batch, max_cache_len).
    """

    cache: StaticCache
    gives_positions: bool
    mask: torch.Tensor | None


def reserve_cache(model: PreTrainedModel, batch_size: int, max_cache_len: int) -> Reserved:
    """Makes the cache of a model.

    A layer that slides keeps every position, and the mask, which counts from position 0, keeps
    the window: a ring would need control flow that depends on the position.

    Args:
        model: for text generation, with positions fixed (see `fix_positions`).
        batch_size: sequences at once.
        max_cache_len: positions that layers of attention hold.

    Raises:
        UserError: the model cannot be run on such a cache.
    """
    mask = torch.ones(batch_size, max_cache_len, dtype=torch.int64)
    failure: Exception | None = None
    for way in (Reserved(_empty(model, max_cache_len), *how) for how in _ways(model, mask)):
        shown = _empty(model, max_cache_len)
        try:
            _run_without_values(model, batch_size, shown, way)
        except Exception as error:
            failure = failure or error
            continue
        for layer, like in zip(way.cache.layers, shown.layers, strict=True):
            _initialize(layer, like)
        return way
    assert failure is not None, "there is a way at least"
    raise UserError(
        f"{type(model).__name__} does not run on a cache of fixed size: {first_line(failure)}",
        instead="Choose another architecture.",
    ) from failure


def _ways(model: PreTrainedModel, mask: torch.Tensor) -> list[tuple[bool, torch.Tensor | None]]:
    positions = "position_ids" in inspect.signature(model.forward).parameters
    given = [(True, None), (True, mask)] if positions else []
    return [(False, None), *given, (False, mask)]


def _run_without_values(
    model: PreTrainedModel, batch_size: int, cache: StaticCache, way: Reserved
) -> None:
    with torch.no_grad(), real_numbers_only(), FakeTensorMode(allow_non_fake_inputs=True):
        ids = torch.zeros(batch_size, 2, dtype=torch.int64)
        positions = {"position_ids": torch.arange(2)[None]} if way.gives_positions else {}
        given = {cache_argument(model): cache}
        model(input_ids=ids, attention_mask=way.mask, use_cache=True, **given, **positions)


def _empty(model: PreTrainedModel, max_cache_len: int) -> StaticCache:
    cache = StaticCache(config=model.config, max_cache_len=max_cache_len)
    for index, layer in enumerate(cache.layers):
        if type(layer) is StaticSlidingWindowLayer:
            cache.layers[index] = StaticLayer(max_cache_len)
        elif type(layer).__name__ == "LinearAttentionAndStaticSlidingWindowAttentionLayer":
            # Not in every version of transformers.
            cache.layers[index] = cache_utils.LinearAttentionAndStaticFullAttentionLayer(
                max_cache_len, layer.number_of_states
            )
    return cache


def _initialize(layer: Any, like: Any) -> None:
    """Reserves in a layer what another of its kind got by running."""
    keys = getattr(like, "keys", None)
    if keys is not None:
        # With no position in it, the layer reserves its own.
        empty = [_real(t, (*t.shape[:2], 0, t.shape[3])) for t in (keys, like.values)]
        StaticLayer.lazy_initialization(layer, *empty)
    for index in range(getattr(like, "number_of_states", 0)):
        for name in ("conv_states", "recurrent_states"):
            state = getattr(like, name)[index]
            if state is None:
                continue
            kept = _real(state, state.shape)
            torch._dynamo.mark_static_address(kept)
            getattr(layer, name)[index] = kept
            getattr(layer, f"is_{name}_initialized")[index] = True
            # Zeros are what is before position 0, so there always is a previous state.
            layer.has_previous_state[index] = True
        layer.conv_kernel_size[index] = like.conv_kernel_size[index]
        layer.dtype, layer.device = like.dtype, torch.device("cpu")


def _real(like: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    return torch.zeros(tuple(shape), dtype=like.dtype)


@dataclasses.dataclass(frozen=True)
class Kept:
    """One tensor of a cache: the name of its buffer, and whether it starts from zeros."""

    name: str
    tensor: torch.Tensor
    is_state: bool


def kept_tensors(cache: StaticCache) -> Iterator[Kept]:
    """Every tensor of a cache, layer by layer."""
    for index, layer in enumerate(cache.layers):
        if getattr(layer, "keys", None) is not None:
            yield Kept(f"key_cache_{index}", layer.keys, False)
            yield Kept(f"value_cache_{index}", layer.values, False)
            yield Kept(f"cumulative_length_{index}", layer.cumulative_length, False)
        for state in range(getattr(layer, "number_of_states", 0)):
            for name, kind in (("conv_states", "conv"), ("recurrent_states", "recurrent")):
                tensor = getattr(layer, name)[state]
                if tensor is not None:
                    yield Kept(f"{kind}_state_{index}_{state}", tensor, True)


def cache_argument(model: PreTrainedModel) -> str:
    """What a model calls its argument for the cache.

    transformers 5.24 calls it `cache`, and `past_key_values` before; a model takes the other one as
    well, and then computes without.
    """
    parameters = inspect.signature(model.forward).parameters
    return "cache" if "cache" in parameters else "past_key_values"


def gives_last_position(model: PreTrainedModel) -> bool:
    """Whether a model computes the logits of the last position without those of the others."""
    return "logits_to_keep" in inspect.signature(model.forward).parameters


def bytes_of(tensor: torch.Tensor) -> int:
    """Bytes of a tensor's elements."""
    return tensor.numel() * tensor.element_size()
