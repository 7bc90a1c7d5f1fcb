"""Rotary frequencies that depend on the length of the sequence, chosen once.

With the rope types `dynamic` (NTK) and `longrope`, transformers chooses the frequencies anew for
the length that it sees at each call, so that the keys of one conversation are rotated by several
sets. A program has one set: that of the cache's length, as if every sequence were that long. The
reference of a comparison has to do the same.

Rests on `transformers.modeling_rope_utils.dynamic_rope_update`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig

_FIXED = "default"
"""A rope type whose frequencies stay as they are."""


def _grows(rope_type: str) -> bool:
    return "dynamic" in rope_type or rope_type == "longrope"


def growing_rope(config: PreTrainedConfig) -> str | None:
    """The rope type of a config, if its frequencies depend on the length of the sequence."""
    parameters: Any = getattr(config.get_text_config(), "rope_parameters", None) or {}
    nested = [value for value in parameters.values() if isinstance(value, dict)]
    for one in nested or [parameters]:
        rope_type = one.get("rope_type") or "default"
        if _grows(rope_type):
            return rope_type
    return None


def fix_positions(model: torch.nn.Module, length: int) -> None:
    """Chooses the rotary frequencies of a model for sequences of `length` positions, for good."""
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    for module in model.modules():
        types = getattr(module, "rope_type", None)
        by_layer = types if isinstance(types, dict) else {None: types}
        for layer_type, rope_type in by_layer.items():
            if not isinstance(rope_type, str) or not _grows(rope_type):
                continue
            prefix = "" if layer_type is None else f"{layer_type}_"
            frequencies, scaling = ROPE_INIT_FUNCTIONS[rope_type](
                module.config, None, seq_len=length, layer_type=layer_type
            )
            module.register_buffer(f"{prefix}inv_freq", frequencies, persistent=False)
            setattr(module, f"{prefix}attention_scaling", scaling)
            if layer_type is None:
                module.rope_type = _FIXED
            else:
                module.rope_type[layer_type] = _FIXED
