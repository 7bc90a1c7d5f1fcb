"""A config and options become an exported program; weights are not needed and not read.

Follows `transformers.integrations.executorch.convert_and_export_with_cache`: one method `forward`,
strict tracing, inputs by keyword. Strict is not a choice: without it the tensors of a static cache
are not recognised as buffers.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import torch

from rules_executorch.action.progress import Progress
from rules_executorch.action.quiet import quiet_tracing
from rules_executorch.compat import patched_export
from rules_executorch.export import quantize
from rules_executorch.export.adapters import cache_kind, custom_ops, static_cache
from rules_executorch.export.adapters.cache import bytes_of
from rules_executorch.export.build import (
    DTYPES,
    build_model,
    ties,
    untouched_memory,
)
from rules_executorch.export.complex_numbers import real_numbers_only
from rules_executorch.export.experts import choose_experts
from rules_executorch.export.plan import GenerationPlan, StatelessPlan, make_plan
from rules_executorch.export.positions import fix_positions
from rules_executorch.export.refusals import cannot_trace, write_trace
from rules_executorch.export.signature import (
    SEQUENCE,
    Cache,
    QuantizedWeight,
    Signature,
    make_signature,
)
from rules_executorch.export.stateless import export_plain

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from transformers import PreTrainedConfig

    from rules_executorch.export.options import ExportOptions


_CACHE_TENSORS = ("key_cache_", "value_cache_", "conv_state_", "recurrent_state_")
"""What the names of a cache's buffers begin with."""


@dataclasses.dataclass(frozen=True)
class Export:
    """An exported program and what the lowering has to know about it."""

    program: ExportedProgram
    signature: Signature


def example_inputs(
    config: PreTrainedConfig, plan: GenerationPlan
) -> tuple[dict[str, torch.Tensor], dict[str, Any] | None]:
    """Inputs to trace with, and the dynamic dimensions of each, or None for a fixed length.

    Returns:
        `input_ids`, int64 (batch, sequence), or `inputs_embeds`, (batch, sequence, hidden size),
        and `cache_position`, int64 (sequence,).
    """
    # One position would be taken for a constant, so a dynamic length is traced with more.
    length = min(3, plan.max_seq_len) if plan.dynamic else plan.max_seq_len
    inputs: dict[str, torch.Tensor] = {}
    if plan.input_form == "input_ids":
        inputs["input_ids"] = torch.zeros(plan.batch_size, length, dtype=torch.int64)
    else:
        inputs["inputs_embeds"] = torch.zeros(
            plan.batch_size, length, config.hidden_size, dtype=DTYPES[plan.dtype]
        )
    inputs["cache_position"] = torch.arange(length)
    if not plan.dynamic:
        return inputs, None
    dim = torch.export.Dim(SEQUENCE, max=plan.max_seq_len)
    return inputs, {name: {0 if name == "cache_position" else 1: dim} for name in inputs}


def export_model(
    config: PreTrainedConfig, options: ExportOptions, progress: Progress | None = None
) -> Export:
    """Exports a model without its weights.

    Args:
        config: the checkpoint's config.
        options: what shapes the graph.
        progress: is told of the stages.

    Returns:
        The program, whose parameters are memory that was never written, and its signature.

    Raises:
        UserError: no adapter fits, an option does not suit the model or is not supported.
    """
    progress = progress or Progress()
    progress.stage("build the model")
    plan = make_plan(config, options)
    if isinstance(plan, StatelessPlan):
        return Export(*export_plain(config, plan))
    kind = cache_kind(config)
    model = build_model(config, plan.dtype)
    fix_positions(model, plan.max_cache_len)
    choose_experts(model, plan.batch_size * plan.max_seq_len)
    shared = ties(model)
    skipped: dict[str, int] = {}
    quantized: list[QuantizedWeight] = []
    if plan.quantization is not None:
        progress.stage("quantize the layers")
        skipped = quantize.skipped_layers(model, plan.quantization)
        with untouched_memory():
            quantized = quantize.quantize_model(model, plan.quantization)
    module = (custom_ops if plan.custom_ops else static_cache).wrap(model, plan)
    inputs, dynamic_shapes = example_inputs(config, plan)
    progress.stage("trace the model")

    def trace() -> ExportedProgram:
        try:
            with torch.no_grad(), patched_export(), quiet_tracing(), real_numbers_only():
                return torch.export.export(
                    module, (), kwargs=inputs, dynamic_shapes=dynamic_shapes, strict=True
                )
        except Exception as error:
            raise cannot_trace(error, type(model).__name__, write_trace(error)) from error

    program = trace()
    if not plan.custom_ops and _reads_values(program) and module.give_positions():
        # OPT takes the length of the cache for a size; with the positions it need not.
        program = trace()
    signature = make_signature(
        program,
        model,
        plan.options,
        adapter=kind,
        dtype=plan.dtype,
        inputs=inputs,
        outputs=("logits",),
        max_seq_len=plan.max_seq_len,
        ties=shared,
        cache=_cache(program, plan, kind, config.num_hidden_layers),
        quantized=quantized,
        not_quantized=skipped,
    )
    return Export(program, signature)


def _reads_values(program: ExportedProgram) -> bool:
    """Whether a size in a program depends on what a tensor holds."""
    return any(node.target is torch.ops.aten.item.default for node in program.graph.nodes)


def _cache(program: ExportedProgram, plan: GenerationPlan, kind: str, layers: int) -> Cache:
    keys = [tensor for name, tensor in program.constants.items() if name.startswith("key_cache_")]
    heads = custom_ops.HEADS_DIM if plan.custom_ops else 1
    return Cache(
        kind=kind,
        layers=layers,
        batch_size=plan.batch_size,
        max_cache_len=plan.max_cache_len,
        kv_heads=tuple(tensor.shape[heads] for tensor in keys),
        head_dim=tuple(tensor.shape[3] for tensor in keys),
        dtype=plan.dtype,
        bytes=sum(
            bytes_of(tensor)
            for name, tensor in program.constants.items()
            if name.startswith(_CACHE_TENSORS)
        ),
    )
