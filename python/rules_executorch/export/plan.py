"""Options and a config become a plan: everything that is left open is resolved, once.

What follows trusts the plan: lengths fit each other and the model, the dtype is one, and a program
that generates text and one that keeps nothing have their own kind of plan.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal

from rules_executorch.checkpoint.config import growth, infer_task, max_positions
from rules_executorch.checkpoint.tasks import GENERATION
from rules_executorch.common.errors import UserError
from rules_executorch.export import quantize
from rules_executorch.export.build import resolve_dtype
from rules_executorch.export.choices import CUSTOM_KERNELS
from rules_executorch.export.layer_kinds import RECURRENT, layer_kinds

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

    from rules_executorch.export.build import Dtype
    from rules_executorch.export.options import ExportOptions, Quantization


@dataclasses.dataclass(frozen=True)
class GenerationPlan:
    """A program that generates text and keeps a cache.

    Attributes:
        options: as they were written.
        dtype: of parameters, cache and activations.
        batch_size: sequences of a call.
        max_cache_len: positions that the cache holds.
        max_seq_len: positions of a call: the most of a dynamic length, or the fixed length.
        dynamic: whether the length of a call varies, from 1.
        input_form: token ids, or their embeddings.
        logits: of the last position of a call, or of all.
        custom_ops: operators of ExecuTorch's LLM extension that are used.
        quantization: of the weights; None leaves them.
    """

    options: ExportOptions
    dtype: Dtype
    batch_size: int
    max_cache_len: int
    max_seq_len: int
    dynamic: bool
    input_form: Literal["input_ids", "inputs_embeds"]
    logits: Literal["last", "all"]
    custom_ops: tuple[str, ...]
    quantization: Quantization | None


@dataclasses.dataclass(frozen=True)
class StatelessPlan:
    """A program that takes everything in one call and keeps nothing.

    Attributes:
        options: as they were written. Sizes of a text or an image that they leave open are the
            model's, which its adapter knows.
        dtype: of parameters and activations.
        task: a key of `TASKS`.
    """

    options: ExportOptions
    dtype: Dtype
    task: str


ExportPlan = GenerationPlan | StatelessPlan

_OF_GENERATION = ("max_cache_len", "custom_ops", "input_form", "logits", "quantization")


def make_plan(config: PreTrainedConfig, options: ExportOptions) -> ExportPlan:
    """Resolves options for a model.

    Args:
        config: the checkpoint's config.
        options: as they were written.

    Raises:
        UserError: options of text generation for another task, operators or schemes that do not
            exist, no length of the cache, or one that does not suit the model or `max_seq_len`.
    """
    if not options.task:
        task = infer_task(config.to_dict(), "config.json")
        options = dataclasses.replace(options, task=task)
    if options.task != GENERATION:
        _refuse_generation_options(options)
        return StatelessPlan(options, resolve_dtype(config, options.dtype), options.task)
    _check_custom_ops(options)
    if options.quantization is not None:
        quantize.check_scheme(options.quantization)
    _check_cache_len(config, options.max_cache_len)
    if layer_kinds(config) & RECURRENT:
        options = _token_at_a_time(config, options)
    length = _sequence_length(options)
    return GenerationPlan(
        options=options,
        dtype=resolve_dtype(config, options.dtype),
        batch_size=options.batch_size,
        max_cache_len=options.max_cache_len,
        max_seq_len=length,
        dynamic=options.dynamic_seq_len and length > 1,
        input_form=options.input_form,
        logits=options.logits,
        custom_ops=options.custom_ops,
        quantization=options.quantization,
    )


def _check_custom_ops(options: ExportOptions) -> None:
    unknown = sorted(set(options.custom_ops) - set(CUSTOM_KERNELS))
    if unknown:
        raise UserError(
            f"custom_ops = {list(options.custom_ops)} names {', '.join(unknown)}, which is no "
            "operator of ExecuTorch's LLM extension.",
            instead=f"Write some of {', '.join(CUSTOM_KERNELS)}.",
        )
    if options.custom_ops and options.batch_size != 1:
        raise UserError(
            f"custom_ops are kernels for one sequence, and batch_size is {options.batch_size}.",
            instead="Write batch_size = 1, or leave custom_ops out.",
        )


def _refuse_generation_options(options: ExportOptions) -> None:
    defaults = {field.name: field.default for field in dataclasses.fields(options)}
    wrong = [name for name in _OF_GENERATION if getattr(options, name) != defaults[name]]
    if wrong:
        raise UserError(
            f"{', '.join(wrong)} belongs to models that generate text, and the task is "
            f"{options.task}.",
            instead=f"Leave {', '.join(wrong)} out.",
        )


def _check_cache_len(config: PreTrainedConfig, max_cache_len: int) -> None:
    limit = max_positions(config)
    if limit is not None:
        limit = int(limit * growth(config))
    upper = "" if limit is None else f" to {limit}"
    if max_cache_len == 0:
        raise UserError(
            "A model that generates text needs max_cache_len, the number of positions that its"
            " cache holds: how many tokens prompt and answer have together.",
            instead=f"Write a number from 1{upper}.",
        )
    if max_cache_len < 0:
        raise UserError(
            f"max_cache_len = {max_cache_len} leaves the cache no position.",
            instead=f"Write a number from 1{upper}.",
        )
    if limit is not None and max_cache_len > limit:
        raise UserError(
            f"max_cache_len = {max_cache_len} is more than the {limit} positions that the model"
            " was made for (`max_position_embeddings`); beyond them its output is garbage.",
            instead=f"Write max_cache_len = {limit} or less.",
        )


def _token_at_a_time(config: PreTrainedConfig, options: ExportOptions) -> ExportOptions:
    """The options of a model that keeps the state of a recurrence.

    transformers runs such a layer over many positions in blocks, whose number depends on the
    length, so a graph has one length; the runner of ExecuTorch feeds a program of one position
    token by token.
    """
    if not options.dynamic_seq_len:
        return options
    if options.max_seq_len > 1:
        raise UserError(
            f"A {config.model_type} keeps the state of a recurrence, and torch cannot trace that "
            f"for lengths that vary up to max_seq_len = {options.max_seq_len}.",
            instead="Leave max_seq_len out, for a program that takes a token at a time.",
        )
    return dataclasses.replace(options, dynamic_seq_len=False)


def _sequence_length(options: ExportOptions) -> int:
    """The bound of a dynamic sequence length, or the fixed one.

    Unset, a dynamic length may fill the cache, and a fixed one is a single position, the form that
    ExecuTorch's runner feeds token by token.
    """
    length = options.max_seq_len or (options.max_cache_len if options.dynamic_seq_len else 1)
    if length > options.max_cache_len:
        raise UserError(
            f"max_seq_len = {length} is longer than the cache, max_cache_len = "
            f"{options.max_cache_len}.",
            instead=f"Write max_seq_len = {options.max_cache_len} or less, or a longer cache.",
        )
    return length
