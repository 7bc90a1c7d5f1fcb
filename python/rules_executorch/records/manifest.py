"""What went into a program and what came out of it, for machines and for people.

The manifest is a function of the inputs: it has no time, path, host name or duration.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import importlib.metadata
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rules_executorch import __version__
from rules_executorch.backends import find_backend
from rules_executorch.common.text import size_text
from rules_executorch.export.build import PREFIX
from rules_executorch.records.size_breakdown import largest_layers, largest_tensors

if TYPE_CHECKING:
    from rules_executorch.checkpoint.description import ModelDescription
    from rules_executorch.export.signature import Signature
    from rules_executorch.lower.options import LowerOptions
    from rules_executorch.lower.pipeline import Lowered
    from rules_executorch.program.inspect import ProgramInfo

SCHEMA_VERSION = 1
_SAMPLES = {"file": "samples of a file", "random": "random samples, which is not enough to ship"}
_DISTRIBUTIONS = ("executorch", "torch", "torchao", "transformers")


@dataclasses.dataclass(frozen=True)
class Inputs:
    """Paths of the files that the manifest gives the SHA-256 of."""

    config: str
    exported: str
    weights: Sequence[str]
    program: str
    data: str | None = None


def file_entry(path: str, name: str | None = None) -> dict[str, Any]:
    """Name, size and SHA-256 of a file; the name is without folders."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "name": name or os.path.basename(path),
        "bytes": os.path.getsize(path),
        "sha256": digest,
    }


def make_manifest(
    inputs: Inputs,
    signature: Signature,
    description: ModelDescription,
    options: LowerOptions,
    lowered: Lowered,
    info: ProgramInfo,
) -> dict[str, Any]:
    """Describes a lowered program; the keys are those of `manifest.schema.json`."""
    backend = find_backend(options.backend)
    methods = {}
    for name, method in info.methods.items():
        counted = lowered.delegation[name]
        methods[name] = {
            **dataclasses.asdict(method),
            "delegation": {
                "delegated": counted.delegated,
                "undelegated": counted.undelegated,
                "share": round(counted.share(), 4),
            },
            "largest_tensors": largest_tensors(lowered.manager.exported_program(name)),
        }
    data = _data(inputs.data)
    return {
        "schema_version": SCHEMA_VERSION,
        "program": {**file_entry(inputs.program, "program.pte")},
        "data": data,
        "inputs": {
            "config": file_entry(inputs.config, "config.json"),
            "exported": file_entry(inputs.exported, "exported.pt2"),
            "weights": [file_entry(path) for path in inputs.weights],
        },
        "versions": {
            "rules_executorch": __version__,
            **{name: importlib.metadata.version(name) for name in _DISTRIBUTIONS},
        },
        "model": {
            "architecture": signature.architecture,
            "model_type": signature.model_type,
            "task": signature.options.task,
            "license": description.license,
            "format": description.format,
            "quantization": dataclasses.asdict(description.quantization)
            if description.quantization is not None
            else None,
            "parameters": description.num_parameters,
            "passed_over": dataclasses.asdict(description.passed_over),
        },
        "export": {
            "adapter": signature.adapter,
            "cache": dataclasses.asdict(signature.cache) if signature.cache is not None else None,
            "dtype": signature.dtype,
            "max_seq_len": signature.max_seq_len,
            "options": dataclasses.asdict(signature.options),
        },
        "lower": {
            "backend": backend.name,
            "runtime_backend": backend.runtime_name,
            "options": dataclasses.asdict(options),
            "calibration": lowered.calibration,
            "quantized": None
            if lowered.layers is None
            else {"layers": lowered.layers[0], "skipped": lowered.layers[1]},
            "patches": {
                "active": list(lowered.patches.active),
                "skipped": dict(lowered.patches.skipped),
            },
        },
        "methods": methods,
        "constant_methods": info.constants,
        "sizes": info.sizes,
        "largest_layers": largest_layers(signature),
        "vocab_size": {
            "model": signature.vocab_size,
            "tokenizer": description.tokenizer.vocab_size,
        },
        "tied": _tied(signature, lowered.tied_copies, data),
        "quantization": _quantization(signature),
    }


def _data(path: str | None) -> dict[str, Any] | None:
    if path is None:
        return None
    from rules_executorch.program.ptd import inspect_data

    tensors = [dataclasses.asdict(tensor) for tensor in inspect_data(path)]
    return {**file_entry(path, "program.ptd"), "tensors": tensors}


def _quantization(signature: Signature) -> dict[str, Any] | None:
    options = signature.options.quantization
    if options is None:
        return None
    return {
        "options": dataclasses.asdict(options),
        "quantized": {
            weight.name: {"scheme": weight.scheme, "group_size": weight.group_size}
            for weight in signature.quantized
        },
        "skipped": {
            name: f"groups of {options.group_size} do not divide its width, {width}"
            for name, width in signature.not_quantized.items()
        },
        "untied": {
            alias: kept
            for alias, kept in signature.ties.items()
            if {alias, kept} & {weight.name for weight in signature.quantized}
        },
    }


def _tied(
    signature: Signature,
    copies: Mapping[str, Sequence[str]],
    data: Mapping[str, Any] | None,
) -> list[dict[str, Any]]:
    found = []
    segments = {tensor["name"]: tensor["segment"] for tensor in data["tensors"]} if data else {}
    uses = collections.Counter(segments.values())
    quantized = {weight.name for weight in signature.quantized}
    for name, places in copies.items():
        aliases = [
            alias
            for alias, kept in signature.ties.items()
            if kept == name and not {alias, name} & quantized
        ]
        if uses[segments.get(PREFIX + name)] > 1:
            # The runtime's kernels and the delegates read the same bytes of the data file.
            places = ["data"]
        if aliases:
            found.append({"names": [name, *sorted(aliases)], "stored_in": list(places)})
    return found


def render_report(manifest: Mapping[str, Any]) -> str:
    """The manifest for people, as Markdown."""
    lines: list[str] = []
    _render_head(manifest, lines)
    for name, method in manifest["methods"].items():
        _render_method(name, method, lines)
    lines += ["## Sizes", "", *_table(("what", "size"), _size_rows(manifest)), ""]
    constants = [
        (f"`{name}`", f"`{value}`") for name, value in manifest["constant_methods"].items()
    ]
    lines += ["## Constant methods", "", *_table(("method", "value"), constants), ""]
    notes = _notes(manifest)
    if notes:
        lines += ["## Notes", "", *(f"- {note}" for note in notes), ""]
    files = [manifest["inputs"]["config"], manifest["inputs"]["exported"]]
    files += [*manifest["inputs"]["weights"], manifest["program"]]
    files += [manifest["data"]] if manifest["data"] else []
    rows = [(f["name"], size_text(f["bytes"]), f"`{f['sha256'][:16]}`") for f in files]
    lines += ["## Files", "", *_table(("file", "size", "SHA-256"), rows), ""]
    return "\n".join(lines)


def _render_head(manifest: Mapping[str, Any], lines: list[str]) -> None:
    export, lower = manifest["export"], manifest["lower"]
    versions = ", ".join(f"{name} {version}" for name, version in manifest["versions"].items())
    lines += [
        f"# {manifest['model']['architecture']} for {lower['backend']}",
        "",
        f"- {_shape(export)}",
        f"- {versions}",
    ]
    calibration = lower["calibration"]
    if calibration is not None:
        lines.append(f"- calibrated with {calibration['samples']} {_SAMPLES[calibration['kind']]}")
    lines.append("")


def _shape(export: Mapping[str, Any]) -> str:
    cache, dtype = export["cache"], export["dtype"]
    if cache is None:
        return f"{dtype}, batch {export['options']['batch_size']}, no cache"
    return (
        f"{dtype}, batch {cache['batch_size']}, cache of {cache['max_cache_len']} positions "
        f"({size_text(cache['bytes'])}), up to {export['max_seq_len']} tokens at once, logits: "
        f"{export['options']['logits']}"
    )


def _render_method(name: str, method: Mapping[str, Any], lines: list[str]) -> None:
    delegation = method["delegation"]
    inside, outside = delegation["delegated"], delegation["undelegated"]
    delegates = ", ".join(f"{count} of {name}" for name, count in method["delegates"].items())
    lines += [
        f"## Method `{name}`",
        "",
        f"- delegates: {delegates or 'none'}; {delegation['share']:.1%} of the operators delegated",
        f"- planned memory: {', '.join(map(size_text, method['planned_bytes'])) or '0 B'}",
    ]
    for kind in ("inputs", "outputs"):
        tensors = ", ".join(
            f"{tensor['dtype']} {tensor['shape']}{' at most' if tensor['dynamic'] else ''}"
            for tensor in method[kind]
        )
        lines.append(f"- {kind}: {tensors}")
    operators = sorted(set(inside) | set(outside))
    operators.sort(key=lambda op: (-outside.get(op, 0), -inside.get(op, 0), op))
    rows = [(f"`{op}`", str(inside.get(op, "")), str(outside.get(op, ""))) for op in operators]
    rows.append(("all", str(sum(inside.values())), str(sum(outside.values()))))
    lines += ["", *_table(("operator", "delegated", "not delegated"), rows), ""]


def _size_rows(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    sizes = dict(manifest["sizes"])
    if manifest["data"]:
        sizes["data file"] = manifest["data"]["bytes"]
    return [(name.replace("_", " "), size_text(size)) for name, size in sizes.items()]


def _notes(manifest: Mapping[str, Any]) -> list[str]:
    notes = []
    if manifest["data"]:
        notes.append(
            f"{len(manifest['data']['tensors'])} tensors are in the data file, without which the "
            "program does not run."
        )
    for tied in manifest["tied"]:
        count = len(tied["stored_in"])
        where = " and ".join(tied["stored_in"])
        names = " and ".join(f"`{name}`" for name in tied["names"])
        times = "once" if count == 1 else f"{count} times"
        notes.append(f"{names} are one matrix, stored {times} ({where}).")
    quantization = manifest["quantization"]
    if quantization is not None:
        counts = collections.Counter(how["scheme"] for how in quantization["quantized"].values())
        stored = ", ".join(f"{count} as {scheme}" for scheme, count in sorted(counts.items()))
        notes.append(f"Quantized weights: {stored}.")
        for name, why in quantization["skipped"].items():
            notes.append(f"`{name}` is not quantized: {why}.")
        for alias, kept in quantization["untied"].items():
            notes.append(
                f"`{alias}` and `{kept}` are one matrix in the checkpoint and two here, since they "
                "are stored in different ways."
            )
    by_device = manifest["lower"]["quantized"]
    if by_device is not None:
        notes.append(f"The device's scheme quantized {len(by_device['layers'])} layers.")
        for name, operator in by_device["skipped"].items():
            notes.append(f"`{name}` is not quantized: the quantizer does not take its {operator}.")
    vocab = manifest["vocab_size"]
    both = vocab["tokenizer"] is not None and vocab["model"] is not None
    if both and vocab["tokenizer"] != vocab["model"]:
        notes.append(
            f"The model's vocabulary has {vocab['model']} entries and the tokenizer's "
            f"{vocab['tokenizer']}; `get_vocab_size` is the model's."
        )
    for name, why in manifest["lower"]["patches"]["skipped"].items():
        notes.append(f"Lowered without the patch {name}: {why}.")
    return notes


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        first, *rest = zip(cells, widths, strict=True)
        padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]
        return f"| {' | '.join(padded)} |"

    rule = [":" + "-" * (widths[0] - 1), *("-" * (width - 1) + ":" for width in widths[1:])]
    return [line(head), f"| {' | '.join(rule)} |", *map(line, rows)]
