"""model.json: what a checkpoint is, read from its headers alone."""

from __future__ import annotations

import dataclasses
import json
from importlib import resources
from typing import Any

from rules_executorch.common.errors import UserError
from rules_executorch.common.files import read_json, write_json

SCHEMA_VERSION = 1


@dataclasses.dataclass(frozen=True)
class TokenizerDescription:
    """The tokenizer beside the weights."""

    kind: str | None
    """`tokenizer.json`, or None where there is no tokenizer that the runner reads."""
    vocab_size: int | None
    """One more than the highest id; less than the model's where the embedding is padded."""
    chat_template: bool


@dataclasses.dataclass(frozen=True)
class PassedOver:
    """What was given and is not needed."""

    files: tuple[str, ...]
    """Files of the checkpoint, by their path below its root."""
    tensors: tuple[str, ...]
    """Tensors of the weights that the model has no place for, as the files call them."""


@dataclasses.dataclass(frozen=True)
class ModelDescription:
    """A checkpoint; `schema/model.schema.json` is its form as JSON.

    A size is None where config.json leaves it to the architecture's default.
    """

    format: str
    """`safetensors` or `gguf`."""
    task: str
    architecture: str | None
    """The class that config.json names, `LlamaForCausalLM`."""
    model_type: str
    eos_ids: tuple[int, ...]
    """Every id that ends a sequence, in the order of the source."""
    bos_id: int | None
    pad_id: int | None
    vocab_size: int | None
    """Rows of the embedding; None for a model that reads no text."""
    tokenizer: TokenizerDescription
    max_position_embeddings: int | None
    """Tokens that there are positions for."""
    hidden_size: int | None
    num_hidden_layers: int | None
    num_attention_heads: int | None
    num_key_value_heads: int | None
    head_dim: int | None
    """Elements of a head: config.json's, not hidden_size / heads, where it is written."""
    sliding_window: int | None
    tied_embeddings: bool
    num_parameters: int
    """Elements of all tensors in the files."""
    weight_bytes: int
    """Bytes of all tensors in the files."""
    dtype: str
    """torch's name of the dtype that most bytes have; for GGUF its type, `Q4_1`."""
    license: str | None
    passed_over: PassedOver
    quantization: dict[str, Any] | None = None
    """How the weights of a safetensors checkpoint are quantized; None if they are not."""

    def to_json(self) -> dict[str, Any]:
        """The description as `schema/model.schema.json` has it."""
        return {"schema_version": SCHEMA_VERSION, **dataclasses.asdict(self)}


def write(path: str, description: ModelDescription) -> None:
    """Writes model.json."""
    write_json(path, description.to_json())


def read(path: str) -> ModelDescription:
    """Reads model.json.

    Raises:
        UserError: not JSON, or against the schema.
    """
    import jsonschema

    value = read_json(path, "The model description")
    schema = resources.files("rules_executorch").joinpath("schema", "model.schema.json")
    validator = jsonschema.Draft202012Validator(json.loads(schema.read_text(encoding="utf-8")))
    problem = next(iter(validator.iter_errors(value)), None)
    if problem is not None:
        where = ".".join(map(str, problem.absolute_path)) or "the top level"
        raise UserError(
            f"The model description {path} is not valid at {where}: {problem.message}.",
            instead="Build it with the `describe` subcommand of this version.",
        )
    del value["schema_version"]
    value["tokenizer"] = TokenizerDescription(**value["tokenizer"])
    value["passed_over"] = PassedOver(**{k: tuple(v) for k, v in value["passed_over"].items()})
    value["eos_ids"] = tuple(value["eos_ids"])
    return ModelDescription(**value)
