"""A config and options become an exported program; weights are not needed and not read.

Follows `transformers.integrations.executorch.convert_and_export_with_cache`: one method `forward`,
strict tracing, inputs by keyword. Strict is not a choice: without it the tensors of a static cache
are not recognised as buffers.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
from typing import TYPE_CHECKING, Any

import torch

from rules_executorch.action.progress import Progress
from rules_executorch.action.quiet import quiet_tracing
from rules_executorch.checkpoint.config import check_cache_len
from rules_executorch.checkpoint.tasks import GENERATION
from rules_executorch.common.errors import UserError
from rules_executorch.compat import patched_export
from rules_executorch.export import quantize
from rules_executorch.export.adapters import choose_adapter, custom_ops
from rules_executorch.export.build import (
    DTYPES,
    build_model,
    read_parameters,
    resolve_dtype,
    ties,
    untouched_memory,
)
from rules_executorch.export.stateless import export_plain

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from transformers import PreTrainedConfig, PreTrainedModel

    from rules_executorch.export.options import ExportOptions

SEQUENCE = "sequence"
"""Name of the dynamic dimension."""


@dataclasses.dataclass(frozen=True)
class Export:
    """An exported program and what the lowering has to know about it."""

    program: ExportedProgram
    signature: dict[str, Any]


def sequence_length(options: ExportOptions) -> int:
    """The bound of a dynamic sequence length, or the fixed one.

    Unset, a dynamic length may fill the cache, and a fixed one is a single position, the form that
    ExecuTorch's runner feeds token by token.

    Raises:
        UserError: it is longer than the cache.
    """
    length = options.max_seq_len or (options.max_cache_len if options.dynamic_seq_len else 1)
    if length > options.max_cache_len:
        raise UserError(
            f"max_seq_len = {length} is longer than the cache, max_cache_len = "
            f"{options.max_cache_len}.",
            instead=f"Write max_seq_len = {options.max_cache_len} or less, or a longer cache.",
        )
    return length


def example_inputs(
    config: PreTrainedConfig, options: ExportOptions, dtype: str
) -> tuple[dict[str, torch.Tensor], dict[str, Any] | None]:
    """Inputs to trace with, and the dynamic dimensions of each, or None for a fixed length.

    Returns:
        `input_ids`, int64 (batch, sequence), or `inputs_embeds`, (batch, sequence, hidden size),
        and `cache_position`, int64 (sequence,).
    """
    bound = sequence_length(options)
    dynamic = options.dynamic_seq_len and bound > 1
    # One position would be taken for a constant, so a dynamic length is traced with more.
    length = min(3, bound) if dynamic else bound
    inputs: dict[str, torch.Tensor] = {}
    if options.input_form == "input_ids":
        inputs["input_ids"] = torch.zeros(options.batch_size, length, dtype=torch.int64)
    else:
        inputs["inputs_embeds"] = torch.zeros(
            options.batch_size, length, config.hidden_size, dtype=DTYPES[dtype]
        )
    inputs["cache_position"] = torch.arange(length)
    if not dynamic:
        return inputs, None
    dim = torch.export.Dim(SEQUENCE, max=bound)
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
    if options.task != GENERATION:
        return Export(*export_plain(config, options))
    custom_ops.check_custom_ops(options)
    if options.quantization is not None:
        quantize.check_scheme(options.quantization)
    check_cache_len(config, options.max_cache_len)
    sequence_length(options)
    adapter = choose_adapter(config)
    dtype = resolve_dtype(config, options.dtype)
    model = build_model(config, dtype)
    shared = ties(model)
    skipped: dict[str, int] = {}
    quantized: list[quantize.QuantizedWeight] = []
    if options.quantization is not None:
        progress.stage("quantize the layers")
        skipped = quantize.skipped_layers(model, options.quantization)
        with untouched_memory():
            quantized = quantize.quantize_model(model, options.quantization)
    module = (custom_ops if options.custom_ops else adapter).wrap(model, options)
    inputs, dynamic_shapes = example_inputs(config, options, dtype)
    progress.stage("trace the model")
    with torch.no_grad(), patched_export(), quiet_tracing():
        program = torch.export.export(
            module, (), kwargs=inputs, dynamic_shapes=dynamic_shapes, strict=True
        )
    signature = _signature(program, model, adapter.name, options, dtype)
    signature["ties"] = shared
    signature["quantized"] = [dataclasses.asdict(weight) for weight in quantized]
    signature["not_quantized"] = skipped
    parts = {part for weight in quantized for part in weight.parts}
    signature["parameters"] = [
        tensor for tensor in signature["parameters"] if tensor["name"] not in parts
    ]
    return Export(program, signature)


def _signature(
    program: ExportedProgram,
    model: PreTrainedModel,
    adapter: str,
    options: ExportOptions,
    dtype: str,
) -> dict[str, Any]:
    """Describes an exported program; the keys are those of `schema/signature.schema.json`."""
    bound = sequence_length(options)
    caches = {
        name: tensor for name, tensor in program.constants.items() if name.startswith("key_cache_")
    }
    heads = custom_ops.HEADS_DIM if options.custom_ops else 1
    names = {n.name: n for n in program.graph.nodes}
    inputs = [
        _tensor(name, names[name].meta["val"]) for name in program.graph_signature.user_inputs
    ]
    outputs = [
        _tensor("logits", names[name].meta["val"]) for name in program.graph_signature.user_outputs
    ]
    dynamic = any(SEQUENCE in tensor["shape"] for tensor in inputs)
    return {
        "schema_version": 1,
        "architecture": type(model).__name__,
        "model_type": model.config.model_type,
        "base_model_prefix": model.base_model_prefix,
        "adapter": adapter,
        "dtype": dtype,
        "methods": {"forward": {"inputs": inputs, "outputs": outputs}},
        "dynamic_dims": {SEQUENCE: {"min": 1, "max": bound}} if dynamic else {},
        "parameters": read_parameters(program, model),
        "cache": {
            "kind": adapter,
            "layers": len(caches),
            "batch_size": options.batch_size,
            "max_cache_len": options.max_cache_len,
            "kv_heads": [tensor.shape[heads] for tensor in caches.values()],
            "head_dim": [tensor.shape[3] for tensor in caches.values()],
            "dtype": dtype,
            "bytes": sum(
                tensor.nbytes
                for name, tensor in program.constants.items()
                if name.startswith(("key_cache_", "value_cache_"))
            ),
        },
        "vocab_size": model.config.vocab_size,
        "max_seq_len": bound,
        "options": json.loads(json.dumps(dataclasses.asdict(options))),
        "versions": {name: importlib.metadata.version(name) for name in ("torch", "transformers")},
    }


def _tensor(name: str, value: torch.Tensor) -> dict[str, Any]:
    return {
        "name": name,
        "dtype": str(value.dtype).removeprefix("torch."),
        "shape": [size if isinstance(size, int) else SEQUENCE for size in value.shape],
    }
