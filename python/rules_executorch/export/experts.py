"""Mixtures of experts in operators that every backend has.

transformers calls an operator of its own (`grouped_mm`), which sorts tokens by expert and which
lowering does not know. There are two ways without it. *Gathering* reads the weights of the experts
that a token chose, once for each token: right for a token at a time. *All* runs every expert over
every token and weighs the outcome, most of it by zero: it reads each weight once however many
tokens there are, where gathering would plan memory for a copy of the weights for each token.

Rests on `transformers.integrations.moe`, whose registry takes implementations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

if TYPE_CHECKING:
    from transformers import PreTrainedModel

GATHER, ALL = "batched_mm", "executorch_all_experts"


def _product(
    rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, is_transposed: bool
) -> torch.Tensor:
    """Rows, (experts, tokens, in), times each expert's weight; (experts, tokens, out)."""
    if is_transposed:
        product = torch.bmm(rows, weight)
    else:
        # The rows are turned, and not the weight, which would be copied at every call.
        product = torch.bmm(weight, rows.transpose(1, 2)).transpose(1, 2)
    return product if bias is None else product + bias.unsqueeze(1)


def all_experts(
    self: torch.nn.Module,
    hidden_states: torch.Tensor,
    top_k_index: torch.Tensor,
    top_k_weights: torch.Tensor,
) -> torch.Tensor:
    """Runs every expert over every token.

    Args:
        self: the module of the experts, as `use_experts_implementation` leaves it.
        hidden_states: (tokens, hidden size).
        top_k_index: int64, (tokens, chosen).
        top_k_weights: (tokens, chosen).

    Returns:
        (tokens, hidden size).
    """
    first = self.gate_up_proj if self.has_gate else self.up_proj
    biases = (None, None)
    if self.has_bias:
        name = "gate_up_proj_bias" if self.has_gate else "up_proj_bias"
        biases = (getattr(self, name), self.down_proj_bias)
    experts = first.shape[0]
    rows = hidden_states.unsqueeze(0).expand(experts, -1, -1)
    inner = _product(rows, first, biases[0], self.is_transposed)
    inner = self._apply_gate(inner) if self.has_gate else self.act_fn(inner)
    outer = _product(inner, self.down_proj, biases[1], self.is_transposed)
    if self.has_post_expert_norm:
        outer = self.post_expert_norm(outer)
    chosen = top_k_index.unsqueeze(-1) == torch.arange(experts)
    share = (chosen * top_k_weights.unsqueeze(-1)).sum(dim=1)
    summed = (outer * share.t().unsqueeze(-1)).sum(dim=0)
    return summed.to(hidden_states.dtype)


ALL_EXPERTS_FUNCTIONS.register(ALL, all_experts)


def choose_experts(model: PreTrainedModel, tokens: int) -> None:
    """Sets how a model computes its experts.

    Args:
        model: any model; without experts that can be chosen it stays as it is.
        tokens: the most tokens of a call, over all sequences.
    """
    if not model._can_set_experts_implementation():
        return
    config = model.config.get_text_config()
    chosen = next(
        (
            value
            for name in ("num_experts_per_tok", "moe_topk", "top_k_experts", "moe_top_k")
            if isinstance(value := getattr(config, name, None), int)
        ),
        1,
    )
    counts = {
        module.gate_up_proj.shape[0] if module.has_gate else module.up_proj.shape[0]
        for module in model.modules()
        if hasattr(module, "has_gate") and hasattr(module, "has_post_expert_norm")
    }
    gathers = all(tokens * chosen <= count for count in counts)
    model.set_experts_implementation(GATHER if gathers else ALL)
