"""From a GGUF file to the description, config and tokenizer that it holds."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rules_executorch.checkpoint import config as configs
from rules_executorch.checkpoint import strict_json, tokenizer
from rules_executorch.checkpoint.describe import describe, fit_config, license_of
from rules_executorch.checkpoint.description import ModelDescription, TokenizerDescription
from rules_executorch.checkpoint.gguf import architectures
from rules_executorch.checkpoint.gguf import tokenizer as gguf_tokenizer
from rules_executorch.checkpoint.gguf.header import GgufFile, type_name
from rules_executorch.checkpoint.gguf.weights import GgufWeights
from rules_executorch.checkpoint.model_card import card_of_gguf
from rules_executorch.checkpoint.sources import Sources
from rules_executorch.checkpoint.tasks import GENERATION
from rules_executorch.common.errors import UserError

Extracted = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]
"""Contents of tokenizer.json, tokenizer_config.json and generation_config.json."""


def describe_gguf(
    sources: Sources, task: str
) -> tuple[ModelDescription, dict[str, Any], Extracted]:
    """Describes a GGUF file; a config.json or tokenizer beside it wins over what it holds.

    Args:
        sources: the checkpoint's files, from `find_sources`; with a GGUF file.
        task: what the model is for.

    Returns:
        the description, the config reduced to what shapes a graph, and what was extracted.

    Raises:
        UserError: anything that is wrong with the file and that its header shows.
    """
    assert sources.gguf is not None
    file = GgufFile(sources.gguf)
    keys = architectures.Keys(file)
    names = architectures.names(file, keys)
    if sources.config:
        config = configs.read_config(sources.config)
        path = sources.config
    else:
        config = architectures.config(file, keys)
        path = sources.gguf
        configs.check_config(config, path)
    task = task or GENERATION
    configs.check_model_type(config, path, task)
    configs.check_decoder(config, path)
    blocks = {name.split(".")[2] for name in names if name.startswith("model.layers.")}
    if len(blocks) != configs.size(config, "num_hidden_layers"):
        # Before a model of so many layers is made.
        raise UserError(
            f"{path} says {configs.size(config, 'num_hidden_layers')} layers, and {sources.gguf}"
            f" has the tensors of {len(blocks)}.",
            instead="Fetch the file again from the model's repository and check its sha256.",
        )
    extracted = _extracted(sources, file)
    settings = extracted[1]
    generation = extracted[2]

    def ids(name: str) -> tuple[int, ...]:
        return configs.special_ids(config, generation, f"{name}_token_id", path)

    described = TokenizerDescription(
        tokenizer.KIND,
        tokenizer.from_json(extracted[0], sources.tokenizer or sources.gguf).vocab_size,
        tokenizer.chat_template(settings, sources.chat_template) is not None,
    )
    reduced, fit = fit_config(
        configs.normalized(config, "float32", task), path, GgufWeights(sources.gguf), task
    )
    description = describe(
        config,
        format="gguf",
        task=task,
        eos_ids=ids("eos"),
        bos_ids=ids("bos"),
        pad_ids=ids("pad"),
        vocab_size=file.tensors["token_embd.weight"].shape[0],
        tokenizer_description=described,
        tied=bool(config.get("tie_word_embeddings")),
        num_parameters=sum(file.tensors[name].num_elements for name in names.values()),
        weight_bytes=sum(file.tensors[name].num_bytes for name in names.values()),
        dtype=_main_type(file, list(names.values())),
        license=license_of(sources.readme) or card_of_gguf(file.metadata).license,
        fit=fit,
        files_passed_over=sources.passed_over,
    )
    return description, reduced, extracted


def _extracted(sources: Sources, file: GgufFile) -> Extracted:
    """What the file holds, replaced by the files that were given beside it."""
    given_tokenizer = None
    if sources.tokenizer:
        given_tokenizer = strict_json.read_object(sources.tokenizer, limit=256_000_000)
    if given_tokenizer is not None and sources.tokenizer_config and sources.generation_config:
        held: Extracted = (given_tokenizer, {}, {})
    else:
        held = gguf_tokenizer.convert(file)
    return (
        given_tokenizer or held[0],
        tokenizer.read_settings(sources.tokenizer_config) or held[1],
        configs.read_generation_config(sources.generation_config) or held[2],
    )


def _main_type(file: GgufFile, names: list[str]) -> str:
    """ggml's name of the type that most bytes have."""
    sizes: Counter[int] = Counter()
    for name in names:
        sizes[file.tensors[name].type] += file.tensors[name].num_bytes
    return type_name(max(sizes, key=lambda kind: (sizes[kind], kind)))
