"""The export of models without a cache: classifiers, and models that give features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from rules_executorch.action.quiet import quiet_tracing
from rules_executorch.export.adapters.stateless import (
    StatelessModule,
    build_plain_model,
    example_inputs,
    given_outputs,
)
from rules_executorch.export.build import ties
from rules_executorch.export.experts import choose_experts
from rules_executorch.export.positions import fix_positions
from rules_executorch.export.refusals import cannot_trace, write_trace
from rules_executorch.export.signature import Signature, make_signature

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from transformers import PreTrainedConfig

    from rules_executorch.export.plan import StatelessPlan


def export_plain(
    config: PreTrainedConfig, plan: StatelessPlan
) -> tuple[ExportedProgram, Signature]:
    """Exports a model without a cache and without its weights.

    Args:
        config: the checkpoint's config.
        plan: what shapes the graph.

    Returns:
        The program and its signature, whose `cache` is null.

    Raises:
        UserError: an option does not suit the model, or no adapter fits it.
    """
    model = build_plain_model(config, plan.task, plan.dtype)
    inputs, dynamic_shapes, bound = example_inputs(model, plan.options, plan.dtype)
    fix_positions(model, bound)
    choose_experts(model, plan.options.batch_size * bound)
    outputs = given_outputs(model, plan.task, inputs)
    try:
        with torch.no_grad(), quiet_tracing():
            program = torch.export.export(
                StatelessModule(model, outputs),
                (),
                kwargs=inputs,
                dynamic_shapes=dynamic_shapes,
                strict=True,
            )
    except Exception as error:
        raise cannot_trace(error, type(model).__name__, write_trace(error)) from error
    signature = make_signature(
        program,
        model,
        plan.options,
        adapter="plain",
        dtype=plan.dtype,
        inputs=inputs,
        outputs=outputs,
        max_seq_len=bound,
        ties=ties(model),
    )
    return program, signature
