"""The manifest of a program for people, as Markdown."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rules_executorch.common.text import size_text

if TYPE_CHECKING:
    from rules_executorch.records.manifest import ExportEntry, Manifest, Method

_SAMPLES = {"file": "samples of a file", "random": "random samples, which is not enough to ship"}


def render_report(manifest: Manifest) -> str:
    """The manifest for people, as Markdown."""
    lines: list[str] = []
    _render_head(manifest, lines)
    for name, method in manifest.methods.items():
        _render_method(name, method, lines)
    lines += ["## Sizes", "", *_table(("what", "size"), _size_rows(manifest)), ""]
    constants = [(f"`{name}`", f"`{value}`") for name, value in manifest.constant_methods.items()]
    lines += ["## Constant methods", "", *_table(("method", "value"), constants), ""]
    notes = _notes(manifest)
    if notes:
        lines += ["## Notes", "", *(f"- {note}" for note in notes), ""]
    inputs = manifest.inputs
    files = [inputs.config, inputs.exported, *inputs.weights, manifest.program]
    files += [manifest.data] if manifest.data else []
    rows = [(f.name, size_text(f.bytes), f"`{f.sha256[:16]}`") for f in files]
    lines += ["## Files", "", *_table(("file", "size", "SHA-256"), rows), ""]
    return "\n".join(lines)


def _render_head(manifest: Manifest, lines: list[str]) -> None:
    export, lower = manifest.export, manifest.lower
    versions = ", ".join(f"{name} {version}" for name, version in manifest.versions.items())
    lines += [
        f"# {manifest.model.architecture} for {lower.backend}",
        "",
        f"- {_shape(export)}",
        f"- {versions}",
    ]
    calibration = lower.calibration
    if calibration is not None:
        lines.append(f"- calibrated with {calibration.samples} {_SAMPLES[calibration.kind]}")
    lines.append("")


def _shape(export: ExportEntry) -> str:
    cache, dtype = export.cache, export.dtype
    if cache is None:
        return f"{dtype}, batch {export.options.batch_size}, no cache"
    return (
        f"{dtype}, batch {cache.batch_size}, cache of {cache.max_cache_len} positions "
        f"({size_text(cache.bytes)}), up to {export.max_seq_len} tokens at once, logits: "
        f"{export.options.logits}"
    )


def _render_method(name: str, method: Method, lines: list[str]) -> None:
    delegation = method.delegation
    inside, outside = delegation.delegated, delegation.undelegated
    delegates = ", ".join(f"{count} of {name}" for name, count in method.delegates.items())
    lines += [
        f"## Method `{name}`",
        "",
        f"- delegates: {delegates or 'none'}; {delegation.share:.1%} of the operators delegated",
        f"- planned memory: {', '.join(map(size_text, method.planned_bytes)) or '0 B'}",
    ]
    for kind, found in (("inputs", method.inputs), ("outputs", method.outputs)):
        tensors = ", ".join(
            f"{tensor.dtype} {tensor.shape}{' at most' if tensor.dynamic else ''}"
            for tensor in found
        )
        lines.append(f"- {kind}: {tensors}")
    operators = sorted(set(inside) | set(outside))
    operators.sort(key=lambda op: (-outside.get(op, 0), -inside.get(op, 0), op))
    rows = [(f"`{op}`", str(inside.get(op, "")), str(outside.get(op, ""))) for op in operators]
    rows.append(("all", str(sum(inside.values())), str(sum(outside.values()))))
    lines += ["", *_table(("operator", "delegated", "not delegated"), rows), ""]


def _size_rows(manifest: Manifest) -> list[tuple[str, str]]:
    sizes = dict(manifest.sizes)
    if manifest.data:
        sizes["data file"] = manifest.data.bytes
    return [(name.replace("_", " "), size_text(size)) for name, size in sizes.items()]


def _notes(manifest: Manifest) -> list[str]:
    notes = []
    if manifest.data:
        notes.append(
            f"{len(manifest.data.tensors)} tensors are in the data file, without which the "
            "program does not run."
        )
    for tied in manifest.tied:
        count = len(tied.stored_in)
        where = " and ".join(tied.stored_in)
        names = " and ".join(f"`{name}`" for name in tied.names)
        times = "once" if count == 1 else f"{count} times"
        notes.append(f"{names} are one matrix, stored {times} ({where}).")
    quantization = manifest.quantization
    if quantization is not None:
        counts = collections.Counter(how.scheme for how in quantization.quantized.values())
        stored = ", ".join(f"{count} as {scheme}" for scheme, count in sorted(counts.items()))
        notes.append(f"Quantized weights: {stored}.")
        for name, why in quantization.skipped.items():
            notes.append(f"`{name}` is not quantized: {why}.")
        for alias, kept in quantization.untied.items():
            notes.append(
                f"`{alias}` and `{kept}` are one matrix in the checkpoint and two here, since they "
                "are stored in different ways."
            )
    by_device = manifest.lower.quantized
    if by_device is not None:
        notes.append(f"The device's scheme quantized {len(by_device.layers)} layers.")
        for name, operator in by_device.skipped.items():
            notes.append(f"`{name}` is not quantized: the quantizer does not take its {operator}.")
    vocab = manifest.vocab_size
    both = vocab.tokenizer is not None and vocab.model is not None
    if both and vocab.tokenizer != vocab.model:
        notes.append(
            f"The model's vocabulary has {vocab.model} entries and the tokenizer's "
            f"{vocab.tokenizer}; `get_vocab_size` is the model's."
        )
    for name, why in manifest.lower.patches.skipped.items():
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
