"""config.json: read as data, bounded, and reduced to what shapes a graph.

`read_config` needs neither torch nor transformers; `load_config` gives transformers' own object.
"""

from __future__ import annotations

import ast
import copy
import functools
import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rules_executorch.checkpoint import compressed_tensors, strict_json
from rules_executorch.checkpoint.tasks import GENERATION, TASKS
from rules_executorch.common.errors import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

_MAX_CONFIG_BYTES = 4_000_000

QUANTIZATION = "quantization_config"
"""The key under which config.json says how the weights are quantized."""

# A size's name and the other names that architectures give it, with its bounds.
_SIZES: dict[str, tuple[tuple[str, ...], int, int]] = {
    "vocab_size": ((), 1, 2**24),
    "hidden_size": (("n_embd", "d_model"), 1, 2**18),
    "intermediate_size": (("n_inner", "d_ff", "ffn_dim"), 1, 2**22),
    "num_hidden_layers": (("n_layer", "n_layers", "num_layers"), 1, 4096),
    "num_attention_heads": (("n_head", "n_heads", "num_heads"), 1, 2**16),
    "num_key_value_heads": ((), 1, 2**16),
    "head_dim": ((), 1, 2**16),
    "max_position_embeddings": (("n_positions", "max_sequence_length"), 1, 2**28),
    "sliding_window": ((), 1, 2**28),
}
_NULLABLE = frozenset({"num_key_value_heads", "head_dim", "sliding_window", "intermediate_size"})

# Keys that say where a checkpoint comes from or how text is sampled, not what the graph is. With
# them gone, two fine-tunes of one architecture have one config.json and share an export.
_NOT_GRAPH = frozenset(
    {
        QUANTIZATION,
        "_name_or_path",
        "_attn_implementation",
        "_attn_implementation_autoset",
        "_commit_hash",
        "attn_implementation",
        "transformers_version",
        "transformers.js_config",
        "torch_dtype",
        "use_cache",
        "gradient_checkpointing",
        "initializer_range",
        "bos_token_id",
        "eos_token_id",
        "decoder_start_token_id",
        "forced_bos_token_id",
        "forced_eos_token_id",
        "suppress_tokens",
        "begin_suppress_tokens",
        "max_length",
        "min_length",
        "do_sample",
        "early_stopping",
        "num_beams",
        "num_beam_groups",
        "num_return_sequences",
        "diversity_penalty",
        "length_penalty",
        "repetition_penalty",
        "encoder_no_repeat_ngram_size",
        "no_repeat_ngram_size",
        "bad_words_ids",
        "remove_invalid_values",
        "exponential_decay_length_penalty",
        "temperature",
        "top_k",
        "top_p",
        "typical_p",
        "id2label",
        "label2id",
        "finetuning_task",
        "prefix",
        "task_specific_params",
        "unsloth_fixed",
        "unsloth_version",
    }
)


# What models that generate no text may read of these: the token at which a text's vector is taken,
# the length of a spectrogram (Audio Spectrogram Transformer), what logits are divided by (TAPAS).
_READ_BY_ENCODERS = frozenset(
    {"bos_token_id", "eos_token_id", "decoder_start_token_id", "max_length", "temperature"}
)


def size(config: Mapping[str, Any], name: str) -> int | None:
    """The size called `name` in config.json, under any of its names.

    None where it is absent, or where the architecture counts it for each stage or layer.
    """
    others, _, _ = _SIZES[name]
    for key in (name, *others):
        if type(config.get(key)) is int:
            return config[key]
    return None


def _check_sizes(config: Mapping[str, Any], path: str) -> None:
    for name, (others, low, high) in _SIZES.items():
        for key in (name, *others):
            value = config.get(key)
            if key not in config or (value is None and (name in _NULLABLE or key != name)):
                continue
            if name == "sliding_window" and value in (0, -1, False):
                continue
            if isinstance(value, list):
                # One for each stage or layer: what that means, the architecture knows.
                continue
            if type(value) is not int or not low <= value <= high:
                raise UserError(
                    f"`{key}` in {path} is {str(value)[:60]!r}, which is not a whole number from"
                    f" {low} to {high:,}.",
                    instead="Use the config.json of the model's repository, unchanged.",
                )


def check_decoder(config: Mapping[str, Any], path: str) -> None:
    """Checks how the sizes of a model that generates text go together.

    Raises:
        UserError: heads that key-value heads, or a hidden size, do not fit.
    """
    heads, groups = size(config, "num_attention_heads"), size(config, "num_key_value_heads")
    hidden = size(config, "hidden_size")
    if heads and groups and heads % groups:
        raise UserError(
            f"{path} has {heads} attention heads, which {groups} key-value heads do not divide.",
            instead="Use the config.json of the model's repository, unchanged.",
        )
    if heads and hidden and config.get("head_dim") is None and hidden % heads:
        raise UserError(
            f"{path} has no `head_dim`, and its {heads} attention heads do not divide the hidden"
            f" size {hidden}.",
            instead="Use the config.json of the model's repository, unchanged.",
        )


def check_config(config: Mapping[str, Any], path: str) -> None:
    """Checks a parsed config.json; `path` is how messages call it.

    Raises:
        UserError: remote code, no `model_type`, a size out of its bounds, or weights quantized in
            a way that is not read.
    """
    if config.get("auto_map"):
        code = config["auto_map"]
        names = sorted(str(v) for v in code.values()) if isinstance(code, dict) else [str(code)]
        raise UserError(
            f"{path} asks for code of the checkpoint's author through `auto_map`"
            f" ({', '.join(names)[:200]}). Code from a checkpoint is never run in a build.",
            instead="Use a checkpoint of an architecture that transformers has itself. If"
            f" transformers knows the model type {str(config.get('model_type'))[:60]!r}, give a"
            " config.json without `auto_map`.",
        )
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or not model_type:
        raise UserError(
            f"{path} has no `model_type`, so the architecture is unknown.",
            instead="Use the config.json of the model's repository, unchanged.",
        )
    if config.get(QUANTIZATION):
        compressed_tensors.check(config[QUANTIZATION], path)
    _check_sizes(config, path)
    nested = config.get("text_config")
    if isinstance(nested, dict):
        _check_sizes(nested, f"text_config of {path}")


def read_config(path: str) -> dict[str, Any]:
    """Reads and checks a config.json as plain data.

    Raises:
        UserError: not JSON, remote code, no `model_type`, a size out of its bounds, or weights
            quantized in a way that is not read.
    """
    config = strict_json.read_object(path, limit=_MAX_CONFIG_BYTES, allow_infinity=True)
    check_config(config, path)
    return config


def normalized(config: Mapping[str, Any], dtype: str, task: str = GENERATION) -> dict[str, Any]:
    """What of a config.json shapes the graph.

    Args:
        config: the checkpoint's config.
        dtype: torch's name of the dtype to record where the config has none.
        task: what the model is for.
    """
    dropped = _NOT_GRAPH if task == GENERATION else _NOT_GRAPH - _READ_BY_ENCODERS
    kept = {key: value for key, value in config.items() if key not in dropped}
    labels = config.get("id2label")
    if task != GENERATION and isinstance(labels, Mapping):
        # A graph depends on the number of classes, not on their names.
        kept["num_labels"] = len(labels)
    kept["dtype"] = config.get("dtype") or config.get("torch_dtype") or dtype
    return kept


@functools.cache
def _tables() -> dict[str, dict[str, tuple[str, ...]]]:
    """For each task, the classes of transformers by model type.

    Read from the source of `transformers.models.auto.modeling_auto` without importing it, which
    takes seconds; imported where the source has another shape than expected.
    """
    wanted = {task.mapping for task in TASKS.values()}
    found: dict[str, Any] = {}
    spec = importlib.util.find_spec("transformers")
    if spec and spec.submodule_search_locations:
        source = Path(spec.submodule_search_locations[0], "models", "auto", "modeling_auto.py")
        if source.is_file():
            for node in ast.parse(source.read_text(encoding="utf-8")).body:
                if (
                    isinstance(node, ast.Assign)
                    and isinstance(node.targets[0], ast.Name)
                    and node.targets[0].id in wanted
                    and isinstance(node.value, ast.Call)
                ):
                    found[node.targets[0].id] = dict(ast.literal_eval(node.value.args[0]))
    if found.keys() != wanted:
        from transformers.models.auto import modeling_auto

        found = {table: dict(getattr(modeling_auto, table)) for table in wanted}
    return {
        name: {
            model_type: (classes,) if isinstance(classes, str) else tuple(classes)
            for model_type, classes in found[task.mapping].items()
        }
        for name, task in TASKS.items()
    }


def model_types(task: str) -> frozenset[str]:
    """The model types that transformers has a model for a task for."""
    return frozenset(_tables()[task])


def fitting_tasks(model_type: str) -> list[str]:
    """The tasks for which transformers has a model of a type."""
    return [task for task, types in _tables().items() if model_type in types]


def infer_task(config: Mapping[str, Any], path: str) -> str:
    """What a checkpoint is for, by the class that its config.json names first.

    Args:
        config: with `model_type`; a parsed config.json or `to_dict()` of transformers' object.
        path: how messages call it.

    Raises:
        UserError: `architectures` is missing and the type has models for several tasks, or no task
            has the class.
    """
    model_type = config["model_type"]
    named = config.get("architectures")
    architecture = named[0] if isinstance(named, list) and named else None
    by_type = fitting_tasks(model_type)
    if not by_type:
        raise UserError(
            f"transformers has no model of the type {str(model_type)[:60]!r}, which {path} names,"
            " for any task that is known.",
            instead="Use another checkpoint, or a toolchain with a transformers that has this one.",
        )
    if architecture is None:
        # A decoder has heads for classes as well; an encoder has one for masked words.
        if GENERATION in by_type and "fill-mask" not in by_type:
            return GENERATION
        if len(by_type) == 1:
            return by_type[0]
        why = f"{path} does not name the class of the model in `architectures`"
    else:
        fit = [task for task in by_type if architecture in _tables()[task][model_type]]
        # A model without a head is of images where transformers lists it as one.
        fit = [t for t in fit if t != "feature-extraction" or f"image-{t}" not in fit]
        if not fit and architecture.endswith("ForPreTraining") and "fill-mask" in by_type:
            return "fill-mask"
        if fit:
            return fit[0]
        why = f"{str(architecture)[:60]}, which {path} names, is a model for no task that is known"
    raise UserError(
        f"{why}, so what the model is for has to be written.",
        instead=f"Set task = one of {', '.join(map(repr, by_type))}.",
    )


def check_model_type(config: Mapping[str, Any], path: str, task: str) -> None:
    """Refuses an architecture that cannot serve `task`.

    Raises:
        UserError: an unknown task, a model type that transformers does not have for it, or a model
            that generates text and reads more than text.
    """
    if task not in TASKS:
        raise UserError(
            f"The task {task!r} is unknown.",
            instead=f"Set `task` to one of {', '.join(map(repr, TASKS))}.",
        )
    model_type = config["model_type"]
    if model_type not in model_types(task):
        others = ", ".join(map(repr, fitting_tasks(model_type)))
        raise UserError(
            f"transformers has no {TASKS[task].made} of the type {model_type[:60]!r}, which"
            f" {path} names, so there is no adapter for it.",
            instead=f"Set `task` to one of {others}."
            if others
            else "Use a checkpoint of an architecture that transformers has as"
            f" `{TASKS[task].auto_class}`, or a toolchain with a transformers that has this one.",
        )
    if task == GENERATION and isinstance(config.get("text_config"), dict):
        raise UserError(
            f"{path} describes a model that reads more than text ({model_type[:60]}), and there is"
            f" no adapter for it under the task {task!r}.",
            instead="Use the text-only checkpoint of the family.",
        )


def load_config(path: str) -> PreTrainedConfig:
    """transformers' configuration object of a config.json, after the checks of `read_config`.

    Nothing is looked up on the hub and no code of the checkpoint is run.

    Raises:
        UserError: see `read_config`; or a model type that transformers does not know, or values
            that its configuration class refuses.
    """
    return parse_config(read_config(path), path)


def parse_config(config: Mapping[str, Any], path: str) -> PreTrainedConfig:
    """transformers' configuration object of a config.json that `check_config` let through.

    Args:
        config: the parsed file.
        path: how messages call it.

    Raises:
        UserError: a model type that transformers does not know, or values that its configuration
            class refuses.
    """
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    raw = {key: copy.deepcopy(value) for key, value in config.items() if key != QUANTIZATION}
    model_type = raw["model_type"]
    if model_type not in CONFIG_MAPPING:
        raise UserError(
            f"transformers does not know the model type {model_type[:60]!r} of {path}.",
            instead="Use a toolchain with a transformers that has it.",
        )
    try:
        kind = CONFIG_MAPPING[model_type]
        # A float that JSON does not have is written as an object, `{"__float__": "Infinity"}`.
        return kind.from_dict(kind._decode_special_floats(raw))
    except Exception as error:
        # Each configuration class does with a value what it likes, and fails as it likes.
        raise UserError(
            f"transformers refuses {path} as a {model_type} configuration:"
            f" {' '.join(str(error).split())[:500]}.",
            instead="Use the config.json of the model's repository, unchanged.",
        ) from error


def max_positions(config: Mapping[str, Any] | PreTrainedConfig) -> int | None:
    """`max_position_embeddings` of a parsed config.json or of transformers' object."""
    if isinstance(config, Mapping):
        return size(config, "max_position_embeddings")
    names = ("max_position_embeddings", *_SIZES["max_position_embeddings"][0])
    return next((v for name in names if type(v := getattr(config, name, None)) is int), None)


def growth(config: Mapping[str, Any] | PreTrainedConfig) -> float:
    """How far beyond its positions a model was made to go: the factor of a `dynamic` rope."""
    get = config.get if isinstance(config, Mapping) else lambda name: getattr(config, name, None)
    rope = get("rope_parameters") or get("rope_scaling") or {}
    factor = rope.get("factor")
    is_dynamic = (rope.get("rope_type") or rope.get("type")) == "dynamic"
    return factor if is_dynamic and isinstance(factor, int | float) and factor > 1 else 1.0


def token_ids(value: Any, what: str) -> tuple[int, ...]:
    """Token ids written as one number, a list, or null.

    Raises:
        UserError: something else; `what` names the key and the file.
    """
    values = [] if value is None else value if isinstance(value, list) else [value]
    if any(type(item) is not int or not 0 <= item < 2**31 for item in values):
        raise UserError(
            f"{what} is {str(value)[:60]!r}, which is neither a token id nor a list of them.",
            instead="Use the file of the model's repository, unchanged.",
        )
    return tuple(dict.fromkeys(values))


def read_generation_config(path: str | None) -> dict[str, Any]:
    """A generation_config.json as plain data; empty where there is none.

    Raises:
        UserError: not a JSON object.
    """
    if path is None:
        return {}
    return strict_json.read_object(path, limit=_MAX_CONFIG_BYTES, allow_infinity=True)


def special_ids(
    config: Mapping[str, Any], generation: Mapping[str, Any], name: str, path: str
) -> tuple[int, ...]:
    """`eos_token_id` and its like: what the generation config says wins over the config.

    Raises:
        UserError: neither an id, a list of ids, nor null.
    """
    if generation.get(name) is not None:
        where = os.path.join(os.path.dirname(path), "generation_config.json")
        return token_ids(generation[name], f"`{name}` in {where}")
    return token_ids(config.get(name), f"`{name}` in {path}")
