"""What is read of a program and of its data file, as it is written down; needs no torch to read."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

from pydantic import Field

from rules_executorch.common.schema import Artifact, Count, Positive

Counts = dict[str, Positive]
"""Name of something to how often it is there."""


@dataclasses.dataclass(frozen=True)
class TensorInfo(Artifact):
    """An input or output."""

    dtype: str
    shape: list[int]
    dynamic: bool
    """The shape is an upper bound."""


@dataclasses.dataclass(frozen=True)
class MethodInfo(Artifact):
    """One method that computes something."""

    inputs: list[TensorInfo]
    """In the order of the call."""
    outputs: list[TensorInfo]
    """In the order of the call."""
    delegates: Counts
    """Backend, as the runtime names it, to the number of delegates."""
    operators: Counts
    """Operator to the number of calls of its kernel, which the runtime must have."""
    planned_bytes: list[int]
    """Size of each memory arena that the caller provides."""


@dataclasses.dataclass(frozen=True)
class ProgramInfo(Artifact):
    """A whole program."""

    methods: dict[str, MethodInfo]
    constants: dict[str, Any]
    """Constant methods and their values."""
    sizes: dict[str, Count]
    """Bytes of the `file`, of the `program` proper (the flatbuffer), and of the segments by what
    they hold: `constants`, `delegates`, `named_data`, `mutable_data`."""


@dataclasses.dataclass(frozen=True)
class DataTensor(Artifact):
    """One entry of a data file."""

    name: str
    """The parameter's, or the key that a delegate asks for."""
    dtype: str | None
    """Null for what a delegate packed."""
    shape: list[int] | None
    """Null for what a delegate packed."""
    bytes: Count
    segment: Annotated[int, Field(ge=0, description="Tensors of one segment are stored once.")]
