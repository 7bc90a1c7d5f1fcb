"""Options of a lowering: typed, and read from one JSON file, as those of an export are."""

from __future__ import annotations

import dataclasses
from typing import Any

from rules_executorch.common import schema
from rules_executorch.common.schema import Artifact


@dataclasses.dataclass(frozen=True)
class LowerOptions(Artifact):
    """What turns an exported program into a program for a device."""

    backend: str
    backend_options: dict[str, Any] = dataclasses.field(default_factory=dict)
    """What the backend takes them for is said by its `options_schema`."""
    allow_undelegated: bool = False
    """Accept a program of which the backend took nothing."""
    external_data: bool = False
    """Keep the weights in a file beside the program."""
    allow_unquantized: bool = False
    """Accept that the quantizer of a device's scheme leaves layers as they are."""
    allow_noncanonical: bool = False
    """Accept that the bytes depend on chance, where packages are not those known to the patches."""


def read_lower_options(path: str) -> LowerOptions:
    """Reads and checks lowering options.

    Raises:
        UserError: not JSON, or against the schema.
    """
    return schema.read(
        LowerOptions,
        path,
        "The options file",
        instead="Write what `rules_executorch schema lower` says.",
    )
