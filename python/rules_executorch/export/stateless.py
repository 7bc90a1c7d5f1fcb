"""The export of models without a cache: classifiers, and models that give features."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
from typing import TYPE_CHECKING, Any

import torch

from rules_executorch.action.quiet import quiet_tracing
from rules_executorch.checkpoint.tasks import TASKS
from rules_executorch.common.errors import UserError
from rules_executorch.export.adapters.stateless import build_plain_model, example_inputs, wrap_plain
from rules_executorch.export.build import read_parameters, resolve_dtype, ties

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from transformers import PreTrainedConfig

    from rules_executorch.export.options import ExportOptions


def export_plain(
    config: PreTrainedConfig, options: ExportOptions
) -> tuple[ExportedProgram, dict[str, Any]]:
    """Exports a model without a cache and without its weights.

    Args:
        config: the checkpoint's config.
        options: what shapes the graph.

    Returns:
        The program and its signature, whose `cache` is null.

    Raises:
        UserError: an option does not suit the model, or no adapter fits it.
    """
    _refuse_generation_options(options)
    dtype = resolve_dtype(config, options.dtype)
    model = build_plain_model(config, options.task, dtype)
    inputs, dynamic_shapes, bound = example_inputs(model, options, dtype)
    output = TASKS[options.task].output
    with torch.no_grad(), quiet_tracing():
        program = torch.export.export(
            wrap_plain(model, options.task),
            (),
            kwargs=inputs,
            dynamic_shapes=dynamic_shapes,
            strict=True,
        )
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}

    def tensor(name: str, node: str) -> dict[str, Any]:
        value = values[node]
        return {
            "name": name,
            "dtype": str(value.dtype).removeprefix("torch."),
            "shape": [size if isinstance(size, int) else "sequence" for size in value.shape],
        }

    user = program.graph_signature
    signature = {
        "schema_version": 1,
        "architecture": type(model).__name__,
        "model_type": config.model_type,
        "base_model_prefix": model.base_model_prefix,
        "adapter": "plain",
        "dtype": dtype,
        "methods": {
            "forward": {
                "inputs": [
                    tensor(name, node) for name, node in zip(inputs, user.user_inputs, strict=True)
                ],
                "outputs": [tensor(output, node) for node in user.user_outputs],
            }
        },
        "dynamic_dims": {"sequence": {"min": 1, "max": bound}} if dynamic_shapes else {},
        "parameters": read_parameters(program, model),
        "ties": ties(model),
        "quantized": [],
        "not_quantized": {},
        "cache": None,
        "vocab_size": getattr(config, "vocab_size", None),
        "max_seq_len": bound,
        "options": json.loads(json.dumps(dataclasses.asdict(options))),
        "versions": {name: importlib.metadata.version(name) for name in ("torch", "transformers")},
    }
    return program, signature


def _refuse_generation_options(options: ExportOptions) -> None:
    """Refuses what only a program that generates text has."""
    given = {
        "max_cache_len": options.max_cache_len > 0,
        "custom_ops": bool(options.custom_ops),
        "input_form": options.input_form != "input_ids",
        "logits": options.logits != "last",
        "quantization": options.quantization is not None,
    }
    wrong = [name for name, is_set in given.items() if is_set]
    if wrong:
        raise UserError(
            f"{', '.join(wrong)} belongs to models that generate text, and the task is "
            f"{options.task}.",
            instead=f"Leave {', '.join(wrong)} out.",
        )
