"""From the files of a checkpoint to its description and its normalized config.

Of weights only the headers are read; the model that they have to fit is built without memory.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from rules_executorch.checkpoint import compressed_tensors, tokenizer
from rules_executorch.checkpoint import config as configs
from rules_executorch.checkpoint.architecture import positions_after_padding
from rules_executorch.checkpoint.description import (
    SCHEMA_VERSION,
    ModelDescription,
    PassedOver,
    StoredQuantization,
    TokenizerDescription,
)
from rules_executorch.checkpoint.fit import Fit, check_fit
from rules_executorch.checkpoint.model_card import read_card
from rules_executorch.checkpoint.sources import Sources
from rules_executorch.checkpoint.stored_weights import Weights, open_safetensors
from rules_executorch.checkpoint.tasks import GENERATION
from rules_executorch.common import dtypes
from rules_executorch.common.errors import UserError

if TYPE_CHECKING:
    import torch

_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.")
_EMBEDDING = re.compile(
    r"(?:^|\.)(?:embed_tokens|wte|word_embeddings|embed_in|tok_embeddings)\.weight$"
)


def license_of(readme: str | None) -> str | None:
    """The licence that the front matter of a model card states, or None."""
    return read_card(readme).license if readme else None


def _embedding_rows(weights: Weights) -> int | None:
    for name in weights.names():
        if _EMBEDDING.search(name) and len(weights.shape(name)) == 2:
            return weights.shape(name)[0]
    return None


def _check_against_weights(config: Mapping[str, Any], path: str, weights: Weights) -> None:
    """The numbers of config.json that the headers can confirm."""
    mend = "Take config.json and all weights from one revision of the model."
    where = weights.where()
    layers = configs.size(config, "num_hidden_layers")
    found = [int(m.group(1)) for m in map(_LAYER.search, weights.names()) if m]
    if layers and found and max(found) + 1 != layers:
        raise UserError(
            f"{path} has {layers} layers, but the weights ({where}) have {max(found) + 1}.",
            instead=mend,
        )
    vocab_size, rows = configs.size(config, "vocab_size"), _embedding_rows(weights)
    if vocab_size and rows and vocab_size != rows:
        raise UserError(
            f"{path} has a vocabulary of {vocab_size}, but the embedding in the weights ({where})"
            f" has {rows} rows.",
            instead=mend,
        )


def _main_dtype(weights: Weights, path: str) -> str:
    """torch's name of the dtype that most elements of the floating tensors have."""
    sizes: Counter[str] = Counter()
    for name in weights.names():
        sizes[weights.dtype(name)] += math.prod(weights.shape(name))
    floating = [(size, dtype) for dtype, size in sizes.items() if dtype in dtypes.FLOATING]
    if not floating:
        raise UserError(
            f"The weights ({path}) have only tensors of {', '.join(sorted(sizes))}, which only the"
            " kernels that they were quantized for read.",
            instead="Use the checkpoint before quantization and set `quantization` on the export.",
        )
    return max(floating)[1]


def describe_safetensors(sources: Sources, task: str) -> tuple[ModelDescription, dict[str, Any]]:
    """Describes a checkpoint of safetensors.

    Args:
        sources: the checkpoint's files, from `find_sources`; with a config.json.
        task: what the model is for; empty for what config.json says.

    Returns:
        the description, and the config reduced to what shapes a graph.

    Raises:
        UserError: anything that is wrong with the checkpoint and that its headers show.
    """
    assert sources.config is not None
    config = configs.read_config(sources.config)
    task = task or configs.infer_task(config, sources.config)
    configs.check_model_type(config, sources.config, task)
    generation = configs.read_generation_config(sources.generation_config)
    stored = open_safetensors(sources)
    quantization = config.get(configs.QUANTIZATION)
    weights: Weights = stored
    if compressed_tensors.is_compressed(stored):
        if not quantization:
            raise UserError(
                f"The weights ({stored.where()}) are quantized, and"
                f" {sources.config} has no `quantization_config` that says how.",
                instead="Use the config.json of the model's repository, unchanged.",
            )
        weights = compressed_tensors.CompressedTensorsWeights(stored)
    if task == GENERATION:
        configs.check_decoder(config, sources.config)
        _check_against_weights(config, sources.config, weights)
    names = weights.names()
    dtype = _main_dtype(weights, weights.where())
    reduced, fit = fit_config(
        configs.normalized(config, dtype, task), sources.config, weights, task
    )
    vocab_size = configs.size(config, "vocab_size") or _embedding_rows(weights)
    if vocab_size is None and task == GENERATION:
        raise UserError(
            f"{sources.config} has no `vocab_size`, and no embedding was found in the weights.",
            instead="Use the config.json of the model's repository, unchanged.",
        )

    def ids(name: str) -> tuple[int, ...]:
        return configs.special_ids(config, generation, f"{name}_token_id", sources.config or "")

    description = describe(
        config,
        format="safetensors",
        task=task,
        eos_ids=ids("eos"),
        bos_ids=ids("bos"),
        pad_ids=ids("pad"),
        vocab_size=vocab_size,
        tokenizer_description=tokenizer.describe(
            sources.tokenizer,
            sources.tokenizer_config,
            sources.chat_template,
            sources.sentencepiece,
        ),
        tied=_is_tied(reduced, names),
        num_parameters=sum(math.prod(weights.shape(name)) for name in names),
        weight_bytes=sum(stored.num_bytes(name) for name in stored.names()),
        dtype=dtype,
        quantization=compressed_tensors.describe(quantization, sources.config)
        if quantization
        else None,
        license=license_of(sources.readme),
        fit=fit,
        files_passed_over=sources.passed_over + _unused(sources, weights),
    )
    return description, reduced


def _unused(sources: Sources, weights: Weights) -> tuple[str, ...]:
    """Files of weights that the index does not name."""
    used = {weights.source(name) for name in weights.names()}
    return tuple(os.path.basename(path) for path in sources.safetensors if path not in used)


def fit_config(
    reduced: dict[str, Any], path: str, weights: Weights, task: str
) -> tuple[dict[str, Any], Fit]:
    """Checks weights against the model of a reduced config.

    Args:
        reduced: of `normalized`.
        path: how messages call the config.
        weights: the checkpoint.
        task: what the model is for.

    Returns:
        the config, with `tie_word_embeddings` off where the weights have an output head of their
        own in spite of it, as transformers does; and how the weights fit.

    Raises:
        UserError: see `parse_config` and `check_fit`.
    """
    fit = check_fit(weights, configs.parse_config(reduced, path), task)
    if not fit.untied:
        return reduced, fit
    reduced = {**reduced, "tie_word_embeddings": False}
    fit = check_fit(weights, configs.parse_config(reduced, path), task)
    if fit.untied:
        raise UserError(
            f"The architecture of {path} ties tensors that have different values in the weights"
            f" ({weights.where()}).",
            instead="Take config.json and all weights from one revision of the model.",
        )
    return reduced, fit


def _is_tied(config: Mapping[str, Any], names: list[str]) -> bool:
    """Whether the output head is the embedding: as written, else as the weights show."""
    if isinstance(config.get("tie_word_embeddings"), bool):
        return config["tie_word_embeddings"]
    return not any(name.endswith(("lm_head.weight", "embed_out.weight")) for name in names)


def describe(
    config: Mapping[str, Any],
    *,
    format: Literal["safetensors", "gguf"],
    task: str,
    eos_ids: tuple[int, ...],
    bos_ids: tuple[int, ...],
    pad_ids: tuple[int, ...],
    vocab_size: int | None,
    tokenizer_description: TokenizerDescription,
    tied: bool,
    num_parameters: int,
    weight_bytes: int,
    dtype: str,
    license: str | None,
    fit: Fit,
    files_passed_over: tuple[str, ...],
    quantization: StoredQuantization | None = None,
) -> ModelDescription:
    """Puts a description together: sizes from the config, the rest as given."""
    heads = configs.size(config, "num_attention_heads")
    hidden = configs.size(config, "hidden_size")
    head_dim = configs.size(config, "head_dim")
    if head_dim is None and heads and hidden:
        head_dim = hidden // heads
    architectures = config.get("architectures")
    named = architectures[0] if isinstance(architectures, list) and architectures else None
    window = configs.size(config, "sliding_window")
    if config.get("use_sliding_window") is False:
        window = None
    return ModelDescription(
        schema_version=SCHEMA_VERSION,
        format=format,
        task=task,
        architecture=named if isinstance(named, str) else None,
        model_type=config["model_type"],
        eos_ids=eos_ids,
        bos_id=next(iter(bos_ids), None),
        pad_id=next(iter(pad_ids), None),
        vocab_size=vocab_size,
        tokenizer=tokenizer_description,
        max_position_embeddings=positions(config, fit.model),
        hidden_size=hidden,
        num_hidden_layers=configs.size(config, "num_hidden_layers"),
        num_attention_heads=heads,
        num_key_value_heads=configs.size(config, "num_key_value_heads") or heads,
        head_dim=head_dim,
        sliding_window=window if window and window > 0 else None,
        tied_embeddings=tied,
        num_parameters=num_parameters,
        weight_bytes=weight_bytes,
        dtype=dtype,
        license=license,
        quantization=quantization,
        passed_over=PassedOver(files_passed_over, fit.passed_over),
    )


def positions(config: Mapping[str, Any], model: torch.nn.Module) -> int | None:
    """Tokens that the model has positions for, or None where its config does not say."""
    rows = configs.size(config, "max_position_embeddings")
    return None if rows is None else rows - positions_after_padding(model)
