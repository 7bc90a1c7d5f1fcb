"""Options of the actions: typed, and read from one JSON file with a schema.

The schemas are in `schema/` beside this file; the rules write the JSON, and a user of the command
line can write it too. A key the schema does not know is an error, never ignored.
"""

from __future__ import annotations

import dataclasses
import json
from importlib import resources
from typing import Any

from rules_executorch.common.errors import UserError
from rules_executorch.common.files import read_json


@dataclasses.dataclass(frozen=True)
class Quantization:
    """Source quantization schemes, which change the exported graph."""

    scheme: str | None
    """Of linear layers; None leaves them."""
    group_size: int = 32
    embedding: str | None = None
    """Of embeddings; None leaves them."""
    allow_skipped: bool = False


@dataclasses.dataclass(frozen=True)
class ExportOptions:
    """What shapes the exported graph; see `schema/export.schema.json`."""

    task: str = "text-generation"
    batch_size: int = 1
    max_cache_len: int = 0
    """Positions the static cache holds; 0 for a model without one."""
    max_seq_len: int = 0
    """Upper bound of the dynamic sequence length, or the fixed length; 0 is `max_cache_len` for a
    dynamic length and 1, a token at a time, for a fixed one."""
    dynamic_seq_len: bool = True
    dtype: str = "float32"
    """dtype of parameters, cache and activations; `auto` is the checkpoint's."""
    input_form: str = "input_ids"
    logits: str = "last"
    """`last`: logits of the last position, (batch, 1, vocab); `all`: of every position."""
    custom_ops: tuple[str, ...] = ()
    quantization: Quantization | None = None
    image_size: int = 0
    """Height and width of images; 0 is the config's."""


@dataclasses.dataclass(frozen=True)
class LowerOptions:
    """What turns an exported program into a program for a device; `schema/lower.schema.json`."""

    backend: str = "portable"
    backend_options: dict[str, Any] = dataclasses.field(default_factory=dict)
    allow_undelegated: bool = False
    """Accept a program of which the backend took nothing."""
    external_data: bool = False
    allow_unquantized: bool = False
    """Accept that the quantizer of a device's scheme leaves layers as they are."""
    allow_noncanonical: bool = False
    """Accept that the bytes depend on chance, where packages are not those known to the patches."""


def _validate(value: Any, schema_name: str, path: str) -> None:
    import jsonschema

    text = (
        resources.files("rules_executorch")
        .joinpath("schema", f"{schema_name}.schema.json")
        .read_text()
    )
    validator = jsonschema.Draft202012Validator(json.loads(text))
    problems = sorted(validator.iter_errors(value), key=lambda e: [str(p) for p in e.absolute_path])
    if problems:
        where = ".".join(map(str, problems[0].absolute_path)) or "the top level"
        raise UserError(
            f"The options file {path} is not valid at {where}: {problems[0].message}.",
            instead=f"The schema is {schema_name}.schema.json of rules_executorch.",
        )


def read_export_options(path: str) -> ExportOptions:
    """Reads and checks export options.

    Raises:
        UserError: not JSON, or against the schema.
    """
    value = read_json(path, "The options file")
    _validate(value, "export", path)
    value = dict(value)
    if value.get("quantization") is not None:
        value["quantization"] = Quantization(**value["quantization"])
    value["custom_ops"] = tuple(value.get("custom_ops", ()))
    return ExportOptions(**value)


def read_lower_options(path: str) -> LowerOptions:
    """Reads and checks lowering options.

    Raises:
        UserError: not JSON, or against the schema.
    """
    value = read_json(path, "The options file")
    _validate(value, "lower", path)
    return LowerOptions(**value)
