"""The manifest of a program: what went into it and what came out of it.

It is a function of the inputs: it has no time, path, host name or duration. Imports no torch.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from typing import Annotated, Any, Literal

from pydantic import Field

from rules_executorch.checkpoint.description import PassedOver, StoredQuantization
from rules_executorch.common import schema
from rules_executorch.common.schema import Artifact, Count, Sha256
from rules_executorch.export.options import ExportOptions, Quantization
from rules_executorch.export.signature import Cache
from rules_executorch.lower.calibration_source import CalibrationSource
from rules_executorch.lower.options import LowerOptions
from rules_executorch.program.info import Counts, DataTensor, MethodInfo

SCHEMA_VERSION: Literal[1] = 1


@dataclasses.dataclass(frozen=True)
class FileEntry(Artifact):
    """A file."""

    name: str
    """Without folders."""
    bytes: Count
    sha256: Sha256


@dataclasses.dataclass(frozen=True)
class DataEntry(FileEntry):
    """The `.ptd` with the weights."""

    tensors: Annotated[list[DataTensor], Field(min_length=1)]


@dataclasses.dataclass(frozen=True)
class InputEntries(Artifact):
    """The files that a program was made of."""

    config: FileEntry
    exported: FileEntry
    weights: Annotated[list[FileEntry], Field(min_length=1)]


@dataclasses.dataclass(frozen=True)
class ModelEntry(Artifact):
    """The model; see `schema model`."""

    architecture: str
    model_type: str
    task: str
    license: str | None
    format: str
    quantization: StoredQuantization | None
    """Of the checkpoint."""
    parameters: int
    passed_over: PassedOver
    """What the checkpoint has and the model has no place for."""


@dataclasses.dataclass(frozen=True)
class ExportEntry(Artifact):
    """The export; see `schema signature`."""

    adapter: str
    cache: Cache | None
    dtype: str
    max_seq_len: Count
    options: ExportOptions


@dataclasses.dataclass(frozen=True)
class QuantizedLayers(Artifact):
    """What the quantizer of a device's scheme did: name of a layer to its operator."""

    layers: dict[str, str]
    skipped: dict[str, str]


@dataclasses.dataclass(frozen=True)
class Patches(Artifact):
    """Patches of the packages that lower."""

    active: list[str]
    skipped: dict[str, str]
    """Name of each one left out, and why."""


@dataclasses.dataclass(frozen=True)
class LowerEntry(Artifact):
    """The lowering."""

    backend: str
    runtime_backend: str | None
    """As the runtime names it."""
    options: LowerOptions
    calibration: CalibrationSource | None
    """Inputs that a scheme of the backend was calibrated with."""
    quantized: QuantizedLayers | None
    patches: Patches


@dataclasses.dataclass(frozen=True)
class Delegation(Artifact):
    """Operators of a method by who runs them, to the number of their calls."""

    delegated: Counts
    undelegated: Counts
    share: Annotated[float, Field(ge=0, le=1)]
    """Calls that delegates run over all calls."""


@dataclasses.dataclass(frozen=True)
class LargeTensor(Artifact):
    """A tensor that takes much of the planned memory."""

    bytes: Count
    operator: str
    """What writes it: a kernel, `delegate` or `buffer`."""
    layer: str
    """In whose code; empty if unknown."""


@dataclasses.dataclass(frozen=True)
class Method(MethodInfo):
    """One method that computes something."""

    delegation: Delegation
    largest_tensors: list[LargeTensor]
    """At the step that needs most memory, largest first."""

    @property
    def info(self) -> MethodInfo:
        """What the program itself holds of it."""
        return MethodInfo(
            **{field.name: getattr(self, field.name) for field in dataclasses.fields(MethodInfo)}
        )


@dataclasses.dataclass(frozen=True)
class LargeLayer(Artifact):
    """A layer with many weights."""

    layer: str
    """Its name in the model."""
    bytes: Count
    """Of its weights as exported."""


@dataclasses.dataclass(frozen=True)
class VocabSize(Artifact):
    """Entries of a vocabulary by who counts them."""

    model: int | None
    tokenizer: int | None


@dataclasses.dataclass(frozen=True)
class Tied(Artifact):
    """Names of one matrix, and what stores it."""

    names: Annotated[list[str], Field(min_length=2)]
    stored_in: list[str]


@dataclasses.dataclass(frozen=True)
class QuantizedEntry(Artifact):
    """How a weight is stored."""

    scheme: str
    group_size: int | None
    """Weights that share a scale; null: a whole row does."""


@dataclasses.dataclass(frozen=True)
class QuantizationEntry(Artifact):
    """What an export with quantized weights did."""

    options: Quantization
    quantized: dict[str, QuantizedEntry]
    skipped: dict[str, str]
    """Layer to reason."""
    untied: dict[str, str]
    """Name of a parameter that was another's, to the name of that one."""


@dataclasses.dataclass(frozen=True)
class Manifest(Artifact):
    """Manifest of a lowered program, beside its .pte."""

    schema_version: Literal[1]
    program: FileEntry
    data: DataEntry | None
    """Null if the weights are in the program."""
    inputs: InputEntries
    versions: dict[str, str]
    model: ModelEntry
    export: ExportEntry
    lower: LowerEntry
    methods: Annotated[dict[str, Method], Field(min_length=1)]
    constant_methods: dict[str, Any]
    sizes: dict[str, Count]
    """Bytes of the parts of the program."""
    largest_layers: list[LargeLayer]
    """By the bytes of their weights as exported, largest first."""
    vocab_size: VocabSize
    tied: list[Tied]
    quantization: QuantizationEntry | None
    """Null if the export quantized nothing."""


def file_entry(path: str, name: str | None = None) -> FileEntry:
    """Name, size and SHA-256 of a file; the name is without folders."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return FileEntry(name or os.path.basename(path), os.path.getsize(path), digest)


def read_manifest(path: str) -> Manifest:
    """Reads a manifest.

    Raises:
        UserError: there is none, it is not JSON, or it is against the schema.
    """
    return schema.read(
        Manifest,
        path,
        "The manifest of the program",
        instead="Lower the program again with this version.",
    )
