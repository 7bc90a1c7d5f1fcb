"""Options of an export: typed, and read from one JSON file.

The rules write the JSON, and a user of the command line can write it too. A key that is not an
option is an error, never ignored.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated

from pydantic import Field

from rules_executorch.checkpoint.tasks import TASKS
from rules_executorch.common import schema
from rules_executorch.common.schema import Artifact, Count, Positive
from rules_executorch.export.choices import Dtype, InputForm, Logits

INSTEAD = "Write what `rules_executorch schema export` says."


@dataclasses.dataclass(frozen=True)
class Quantization(Artifact):
    """Source quantization schemes, which change the exported graph."""

    scheme: str | None
    """Of linear layers; null leaves them."""
    group_size: Positive = 32
    embedding: str | None = None
    """Of embeddings; null leaves them."""
    allow_skipped: bool = False


@dataclasses.dataclass(frozen=True)
class ExportOptions(Artifact):
    """What shapes the exported graph."""

    task: Annotated[str, Field(json_schema_extra={"enum": [*TASKS]})] = ""
    """Left out: what config.json says."""
    batch_size: Positive = 1
    max_cache_len: int = 0
    """Positions the static cache holds; 0 for a model without one."""
    max_seq_len: Count = 0
    """Upper bound of the dynamic sequence length, or the fixed length; 0 is `max_cache_len` for a
    dynamic length and 1, a token at a time, for a fixed one."""
    dynamic_seq_len: bool = True
    dtype: Dtype = "float32"
    """dtype of parameters, cache and activations; `auto` is the checkpoint's."""
    input_form: InputForm = "input_ids"
    logits: Logits = "last"
    """`last`: logits of the last position, (batch, 1, vocab); `all`: of every position."""
    custom_ops: Annotated[tuple[str, ...], Field(json_schema_extra={"uniqueItems": True})] = ()
    quantization: Quantization | None = None
    image_size: Count = 0
    """Height and width of images; 0 is the config's."""


def read_export_options(path: str) -> ExportOptions:
    """Reads and checks export options.

    Raises:
        UserError: not JSON, or against the schema.
    """
    return schema.read(ExportOptions, path, "The options file", instead=INSTEAD)
