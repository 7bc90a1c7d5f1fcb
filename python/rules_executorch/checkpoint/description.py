"""model.json: what a checkpoint is, read from its headers alone."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal

from pydantic import Field

from rules_executorch.checkpoint.tasks import TASKS
from rules_executorch.common import schema
from rules_executorch.common.schema import Artifact, Count, Positive

SCHEMA_VERSION: Literal[1] = 1


@dataclasses.dataclass(frozen=True)
class TokenizerDescription(Artifact):
    """The tokenizer beside the weights."""

    kind: Literal["tokenizer.json"] | None
    """Null where there is no tokenizer that the runner reads."""
    vocab_size: Positive | None
    """One more than the highest id; less than the model's where the embedding is padded."""
    chat_template: bool


@dataclasses.dataclass(frozen=True)
class WeightScheme(Artifact):
    """How compressed-tensors stores the weights of a group of layers."""

    type: str
    bits: int
    strategy: str
    group_size: int | None
    symmetric: bool


@dataclasses.dataclass(frozen=True)
class StoredQuantization(Artifact):
    """How the weights of a safetensors checkpoint are quantized."""

    method: Literal["compressed-tensors"]
    format: str | None
    weights: tuple[WeightScheme, ...]


@dataclasses.dataclass(frozen=True)
class PassedOver(Artifact):
    """What was given and is not needed."""

    files: tuple[str, ...]
    """Files of the checkpoint, by their path below its root."""
    tensors: tuple[str, ...]
    """Tensors of the weights that the model has no place for, as the files call them."""


@dataclasses.dataclass(frozen=True)
class ModelDescription(Artifact):
    """Description of a checkpoint, model.json.

    A size is null where config.json leaves it to the architecture's default.
    """

    schema_version: Literal[1]
    format: Literal["safetensors", "gguf"]
    task: Annotated[str, Field(json_schema_extra={"enum": [*TASKS]})]
    architecture: str | None
    """The class that config.json names, `LlamaForCausalLM`."""
    model_type: str
    eos_ids: Annotated[tuple[Count, ...], Field(json_schema_extra={"uniqueItems": True})]
    """Every id that ends a sequence, in the order of the source."""
    bos_id: Count | None
    pad_id: Count | None
    vocab_size: Positive | None
    """Rows of the embedding; null for a model that reads no text."""
    tokenizer: TokenizerDescription
    max_position_embeddings: Positive | None
    """Tokens that there are positions for."""
    hidden_size: Positive | None
    num_hidden_layers: Positive | None
    num_attention_heads: Positive | None
    num_key_value_heads: Positive | None
    head_dim: Positive | None
    """Elements of a head: config.json's, not hidden_size / heads, where it is written."""
    sliding_window: Positive | None
    tied_embeddings: bool
    num_parameters: Positive
    """Elements of all tensors in the files."""
    weight_bytes: Positive
    """Bytes of all tensors in the files."""
    dtype: str
    """torch's name of the dtype that most bytes have; for GGUF its type, `Q4_1`."""
    license: str | None
    passed_over: PassedOver
    quantization: StoredQuantization | None
    """Null if the weights are not quantized, or the format is GGUF."""


def write(path: str, description: ModelDescription) -> None:
    """Writes model.json."""
    schema.write(path, description)


def read(path: str) -> ModelDescription:
    """Reads model.json.

    Raises:
        UserError: there is none, it is not JSON, or it is against the schema.
    """
    return schema.read(
        ModelDescription,
        path,
        "The model description",
        instead="Build it with the `describe` subcommand of this version.",
    )
