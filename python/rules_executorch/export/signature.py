"""What an exported program is, beside its `.pt2`: made by the export, read by whatever comes after.

Imports no torch until a signature is made.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from rules_executorch.common import schema
from rules_executorch.common.schema import Artifact, Count, Positive
from rules_executorch.export.options import ExportOptions

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram
    from transformers import PreTrainedModel

SCHEMA_VERSION: Literal[1] = 1
SEQUENCE = "sequence"
"""Name of the dynamic dimension."""
FORWARD = "forward"


@dataclasses.dataclass(frozen=True)
class Tensor(Artifact):
    """An input, an output or a parameter."""

    name: str
    dtype: str
    """As torch names it: `float32`."""
    shape: tuple[Annotated[int | str, Field(description="A size, or a dynamic dimension.")], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape of a tensor without dynamic dimensions."""
        sizes = tuple(size for size in self.shape if isinstance(size, int))
        assert len(sizes) == len(self.shape), f"{self.name} has a dynamic shape"
        return sizes


@dataclasses.dataclass(frozen=True)
class Method(Artifact):
    """Inputs and outputs of one method, in the order of the call."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


@dataclasses.dataclass(frozen=True)
class DynamicDim(Artifact):
    """The sizes that a dynamic dimension may have, both included."""

    min: int
    max: int


@dataclasses.dataclass(frozen=True)
class Cache(Artifact):
    """The static cache that is part of a program for text generation."""

    kind: str
    """The adapter's name."""
    layers: Positive
    batch_size: Positive
    max_cache_len: Positive
    """Positions that it holds."""
    kv_heads: tuple[Count, ...]
    """By layer."""
    head_dim: tuple[Count, ...]
    """By layer."""
    dtype: str
    bytes: int


@dataclasses.dataclass(frozen=True)
class QuantizedWeight(Artifact):
    """A weight that a checkpoint has and the program has in parts."""

    name: str
    """Of the weight in the model, for example `lm_head.weight`."""
    shape: tuple[Count, ...]
    scheme: str
    """A key of `choices.SCHEMES`."""
    group_size: int | None
    """Weights that share a scale; null: a whole row does."""
    embedding: bool
    parts: Annotated[tuple[str, ...], Field(min_length=1)]
    """Names of the parameters that hold it, in torchao's order."""


@dataclasses.dataclass(frozen=True)
class Signature(Artifact):
    """Signature of an exported program, beside its .pt2."""

    schema_version: Literal[1]
    architecture: str
    """Class of the model in transformers."""
    model_type: str
    base_model_prefix: str
    adapter: str
    dtype: Literal["float32", "float16", "bfloat16"]
    methods: dict[str, Method]
    dynamic_dims: dict[str, DynamicDim]
    parameters: tuple[Tensor, ...]
    """What a checkpoint has to give, by its own names."""
    quantized: tuple[QuantizedWeight, ...]
    not_quantized: dict[str, int]
    """Layers whose width the groups do not divide, and the width."""
    ties: dict[str, str]
    """Name of a tied parameter to the one it shares memory with."""
    cache: Cache | None
    vocab_size: Positive | None
    max_seq_len: Count
    """0 for a model of images."""
    options: ExportOptions
    versions: dict[str, str]

    @property
    def tensors(self) -> frozenset[str]:
        """Names of what a checkpoint has to give."""
        return frozenset(
            {tensor.name for tensor in self.parameters} | {weight.name for weight in self.quantized}
        )

    @property
    def static_cache(self) -> Cache:
        """The cache of a program for text generation, which always has one."""
        assert self.cache is not None, f"{self.architecture} was exported without a cache"
        return self.cache

    @property
    def forward(self) -> Method:
        """The method that an export has."""
        return self.methods[FORWARD]


def read_signature(path: str) -> Signature:
    """Reads a signature.

    Raises:
        UserError: there is none, it is not JSON, or it is against the schema.
    """
    return schema.read(
        Signature,
        path,
        "The signature of the exported program",
        instead="Export the program again with this version.",
    )


def make_signature(
    program: ExportedProgram,
    model: PreTrainedModel,
    options: ExportOptions,
    *,
    adapter: str,
    dtype: Literal["float32", "float16", "bfloat16"],
    inputs: Iterable[str],
    outputs: Iterable[str],
    max_seq_len: int,
    ties: Mapping[str, str],
    cache: Cache | None = None,
    quantized: Sequence[QuantizedWeight] = (),
    not_quantized: Mapping[str, int] | None = None,
) -> Signature:
    """Describes an exported program.

    Args:
        program: with one method.
        model: what it was made of, its layers quantized.
        options: of the export.
        adapter: name of what wrapped the model.
        dtype: of parameters and activations.
        inputs: names of the inputs, in the order of the call.
        outputs: names of the outputs.
        max_seq_len: the bound of the dynamic length, the fixed length, or 0 without a sequence.
        ties: of the model before it was quantized.
        cache: what the program keeps between calls.
        quantized: weights that are held in parts.
        not_quantized: see `Signature`.
    """
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    user = program.graph_signature
    taken = tuple(
        _tensor(name, values[node]) for name, node in zip(inputs, user.user_inputs, strict=True)
    )
    given = tuple(
        _tensor(name, values[node]) for name, node in zip(outputs, user.user_outputs, strict=True)
    )
    dynamic = any(SEQUENCE in tensor.shape for tensor in taken)
    parts = {part for weight in quantized for part in weight.parts}
    return Signature(
        schema_version=SCHEMA_VERSION,
        architecture=type(model).__name__,
        model_type=model.config.model_type,
        base_model_prefix=model.base_model_prefix,
        adapter=adapter,
        dtype=dtype,
        methods={FORWARD: Method(taken, given)},
        dynamic_dims={SEQUENCE: DynamicDim(1, max_seq_len)} if dynamic else {},
        parameters=tuple(
            tensor for tensor in _parameters(program, model) if tensor.name not in parts
        ),
        quantized=tuple(quantized),
        not_quantized=dict(not_quantized or {}),
        ties=dict(ties),
        cache=cache,
        vocab_size=getattr(model.config, "vocab_size", None),
        max_seq_len=max_seq_len,
        options=options,
        versions={name: importlib.metadata.version(name) for name in ("torch", "transformers")},
    )


def _tensor(name: str, value: torch.Tensor) -> Tensor:
    return Tensor(
        name,
        str(value.dtype).removeprefix("torch."),
        tuple(size if isinstance(size, int) else SEQUENCE for size in value.shape),
    )


def _parameters(program: ExportedProgram, model: PreTrainedModel) -> Iterator[Tensor]:
    """The tensors of a checkpoint that a program reads, in the model's order.

    Tied names are left out, and so is what no node of the graph uses, such as a pooler whose result
    is dropped.
    """
    from rules_executorch.export.build import PREFIX, ties, wanted_tensors

    signature = program.graph_signature
    places = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    shared = {PREFIX + name: PREFIX + kept for name, kept in ties(model).items()}
    # Strict tracing leaves what nothing uses in the graph; lowering drops it.
    live: set[torch.fx.Node] = set()
    for node in reversed(program.graph.nodes):
        if node in live or (node.op != "placeholder" and node.is_impure()):
            live.update(node.all_input_nodes)
    used = [places[node.name] for node in live if node.name in places]
    read = {shared.get(name, name) for name in used}
    for name in wanted_tensors(model):
        if PREFIX + name in read:
            yield _tensor(name, program.state_dict[PREFIX + name])
