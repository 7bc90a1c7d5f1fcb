"""Makes the manifest of a program that was just lowered."""

from __future__ import annotations

import collections
import dataclasses
import importlib.metadata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rules_executorch import __version__
from rules_executorch.backends import find_backend
from rules_executorch.export.build import PREFIX
from rules_executorch.program.ptd import inspect_data
from rules_executorch.records import manifest
from rules_executorch.records.manifest import DataEntry, Manifest, file_entry
from rules_executorch.records.size_breakdown import largest_layers, largest_tensors

if TYPE_CHECKING:
    from rules_executorch.checkpoint.description import ModelDescription
    from rules_executorch.export.signature import Signature
    from rules_executorch.lower.options import LowerOptions
    from rules_executorch.lower.pipeline import Lowered
    from rules_executorch.program.info import ProgramInfo

_DISTRIBUTIONS = ("executorch", "torch", "torchao", "transformers")


@dataclasses.dataclass(frozen=True)
class Inputs:
    """Paths of the files that the manifest gives the SHA-256 of."""

    config: str
    exported: str
    weights: Sequence[str]
    program: str
    data: str | None = None


def make_manifest(
    inputs: Inputs,
    signature: Signature,
    description: ModelDescription,
    options: LowerOptions,
    lowered: Lowered,
    info: ProgramInfo,
) -> Manifest:
    """Describes a lowered program.

    Args:
        inputs: what it was made of, and where it is.
        signature: of the export.
        description: of the model.
        options: of the lowering.
        lowered: how it became what it is.
        info: the program as it was read back from its file.
    """
    data = _data(inputs.data)
    return Manifest(
        schema_version=manifest.SCHEMA_VERSION,
        program=file_entry(inputs.program, "program.pte"),
        data=data,
        inputs=manifest.InputEntries(
            config=file_entry(inputs.config, "config.json"),
            exported=file_entry(inputs.exported, "exported.pt2"),
            weights=[file_entry(path) for path in inputs.weights],
        ),
        versions={
            "rules_executorch": __version__,
            **{name: importlib.metadata.version(name) for name in _DISTRIBUTIONS},
        },
        model=manifest.ModelEntry(
            architecture=signature.architecture,
            model_type=signature.model_type,
            task=signature.options.task,
            license=description.license,
            format=description.format,
            quantization=description.quantization,
            parameters=description.num_parameters,
            passed_over=description.passed_over,
        ),
        export=manifest.ExportEntry(
            adapter=signature.adapter,
            cache=signature.cache,
            dtype=signature.dtype,
            max_seq_len=signature.max_seq_len,
            options=signature.options,
        ),
        lower=_lower(options, lowered),
        methods=_methods(info, lowered),
        constant_methods=info.constants,
        sizes=info.sizes,
        largest_layers=largest_layers(signature),
        vocab_size=manifest.VocabSize(signature.vocab_size, description.tokenizer.vocab_size),
        tied=_tied(signature, lowered.tied_copies, data),
        quantization=_quantization(signature),
    )


def _data(path: str | None) -> DataEntry | None:
    if path is None:
        return None
    entry = file_entry(path, "program.ptd")
    return DataEntry(entry.name, entry.bytes, entry.sha256, inspect_data(path))


def _lower(options: LowerOptions, lowered: Lowered) -> manifest.LowerEntry:
    backend = find_backend(options.backend)
    patches = lowered.patches
    return manifest.LowerEntry(
        backend=backend.name,
        runtime_backend=backend.runtime_name,
        options=options,
        calibration=lowered.calibration,
        quantized=None if lowered.layers is None else manifest.QuantizedLayers(*lowered.layers),
        patches=manifest.Patches(list(patches.active), dict(patches.skipped)),
    )


def _methods(info: ProgramInfo, lowered: Lowered) -> dict[str, manifest.Method]:
    methods = {}
    for name, method in info.methods.items():
        counted = lowered.delegation[name]
        methods[name] = manifest.Method(
            **vars(method),
            delegation=manifest.Delegation(
                counted.delegated, counted.undelegated, round(counted.share(), 4)
            ),
            largest_tensors=largest_tensors(lowered.manager.exported_program(name)),
        )
    return methods


def _quantization(signature: Signature) -> manifest.QuantizationEntry | None:
    options = signature.options.quantization
    if options is None:
        return None
    quantized = {weight.name for weight in signature.quantized}
    return manifest.QuantizationEntry(
        options=options,
        quantized={
            weight.name: manifest.QuantizedEntry(weight.scheme, weight.group_size)
            for weight in signature.quantized
        },
        skipped={
            name: f"groups of {options.group_size} do not divide its width, {width}"
            for name, width in signature.not_quantized.items()
        },
        untied={alias: kept for alias, kept in signature.ties.items() if {alias, kept} & quantized},
    )


def _tied(
    signature: Signature, copies: Mapping[str, Sequence[str]], data: DataEntry | None
) -> list[manifest.Tied]:
    found = []
    segments = {tensor.name: tensor.segment for tensor in data.tensors} if data else {}
    uses = collections.Counter(segments.values())
    quantized = {weight.name for weight in signature.quantized}
    for name, places in copies.items():
        aliases = [
            alias
            for alias, kept in signature.ties.items()
            if kept == name and not {alias, name} & quantized
        ]
        segment = segments.get(PREFIX + name)
        if segment is not None and uses[segment] > 1:
            # The runtime's kernels and the delegates read the same bytes of the data file.
            places = ["data"]
        if aliases:
            found.append(manifest.Tied([name, *sorted(aliases)], list(places)))
    return found
