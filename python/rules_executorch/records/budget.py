"""Limits on a program, checked against its manifest; reads no program and imports no torch."""

from __future__ import annotations

import collections
import dataclasses
import fnmatch
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rules_executorch.common.text import size_text

if TYPE_CHECKING:
    from rules_executorch.records.manifest import ExportEntry, Manifest, Method

# The runtime registers them itself, whatever kernels an app links: kernels/prim_ops of ExecuTorch.
PRIM_OPERATORS = (
    "aten::_local_scalar_dense",
    "aten::sym_numel",
    "aten::sym_size.int",
    "executorch_prim::*",
)
_NAMED = 8
_LLM = "llama::"


@dataclasses.dataclass(frozen=True)
class Budget:
    """What a program may take; None does not limit.

    Attributes:
        max_program_bytes: size of the `.pte`, and of the `.ptd` if it has one.
        max_planned_bytes: planned memory (sum of the arenas) of the method that needs most.
        min_delegated_share: calls that delegates run over all calls, 0 to 1, in each method.
        allowed_operators: names of kernels that the app's runtime has, such as `aten::add.out`,
            also with `*`. The runtime's own `PRIM_OPERATORS` are always there.
        device: label of the `executorch_device` that the program is for, for messages.
    """

    max_program_bytes: int | None = None
    max_planned_bytes: int | None = None
    min_delegated_share: float | None = None
    allowed_operators: Sequence[str] | None = None
    device: str | None = None


@dataclasses.dataclass(frozen=True)
class Check:
    """One limit, and whether a program keeps it.

    Attributes:
        what: the measured quantity.
        found, limit: for people.
        problem: by how much it fails, why, and which limit would pass; None when it passes.
    """

    what: str
    found: str
    limit: str
    problem: str | None


def check_budget(manifest: Manifest, budget: Budget) -> list[Check]:
    """Compares a program with a budget.

    Args:
        manifest: of the program.
        budget: the limits.

    Returns:
        One check for each limit that is set, per method where it is a method's.
    """
    checks = []
    if budget.max_program_bytes is not None:
        checks.append(_program_bytes(manifest, budget.max_program_bytes))
    if budget.max_planned_bytes is not None:
        checks.append(_planned_bytes(manifest, budget.max_planned_bytes))
    if budget.min_delegated_share is not None:
        for name, method in manifest.methods.items():
            checks.append(_delegated_share(name, method, budget.min_delegated_share))
    if budget.allowed_operators is not None:
        checks.append(_operators(manifest, budget.allowed_operators, budget.device))
    return checks


def render(checks: Sequence[Check]) -> str:
    """The checks as a table."""
    rows = [
        (check.what, check.found, check.limit, "ok" if check.problem is None else "OVER")
        for check in checks
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        f"{what:<{widths[0]}}  {found:>{widths[1]}}  {limit:<{widths[2]}}  {verdict}"
        for what, found, limit, verdict in rows
    )


def _bytes(size: int) -> str:
    return f"{size} bytes ({size_text(size)})"


def _over(found: int, limit: int) -> str:
    return f"{_bytes(found - limit)} more than the {limit} it may have"


def _program_bytes(manifest: Manifest, limit: int) -> Check:
    data = manifest.data.bytes if manifest.data else 0
    found = manifest.program.bytes + data
    problem = None
    if found > limit:
        parts = {name: size for name, size in manifest.sizes.items() if name != "file" and size}
        if data:
            parts["data file"] = data
        largest = sorted(parts.items(), key=lambda part: (-part[1], part[0]))
        made_of = ", ".join(f"{name} {size_text(size)}" for name, size in largest)
        problem = (
            f"The program has {_bytes(found)}: {_over(found, limit)}. It is made of {made_of}. "
            f"{_layers(manifest)}{_stored(manifest)}"
            f"max_program_bytes = {found} would pass, or {_smaller(manifest)}."
        )
    return Check("program bytes", str(found), f"at most {limit}", problem)


def _layers(manifest: Manifest) -> str:
    layers = manifest.largest_layers
    if not layers:
        return ""
    named = ", ".join(f"{layer.layer} {size_text(layer.bytes)}" for layer in layers)
    return f"The largest layers, by their weights as exported: {named}. "


def _stored(manifest: Manifest) -> str:
    """What takes more room in the program than it has to."""
    notes = []
    for tied in manifest.tied:
        if len(tied.stored_in) > 1:
            names = " and ".join(tied.names)
            notes.append(f"{names} are one matrix, stored {len(tied.stored_in)} times. ")
    if manifest.quantization and manifest.quantization.skipped:
        notes.append(f"Not quantized: {_few(sorted(manifest.quantization.skipped))}. ")
    return "".join(notes)


def _smaller(manifest: Manifest) -> str:
    if not manifest.export.cache:
        return "a smaller model"
    if manifest.quantization:
        return "an export with weights of fewer bits"
    return 'an export with quantization, for example quantization = "8da4w"'


def _planned_bytes(manifest: Manifest, limit: int) -> Check:
    planned = {name: sum(method.planned_bytes) for name, method in manifest.methods.items()}
    worst = max(planned, key=lambda name: (planned[name], name))
    found = planned[worst]
    problem = None
    if found > limit:
        export = manifest.export
        cache = export.cache
        held = (
            f"The cache of {cache.max_cache_len} positions takes {size_text(cache.bytes)} of it. "
            if cache
            else ""
        )
        problem = (
            f"The method {worst} plans {_bytes(found)} of memory: {_over(found, limit)}. {held}"
            f"{_tensors(manifest.methods[worst])}"
            f"max_planned_bytes = {found} would pass, or an export {_smaller_inputs(export)}."
        )
    return Check(f"planned bytes of {worst}", str(found), f"at most {limit}", problem)


def _tensors(method: Method) -> str:
    tensors = method.largest_tensors
    if not tensors:
        return ""
    named = ", ".join(
        f"{tensor.operator}{' in ' + tensor.layer if tensor.layer else ''} "
        f"{size_text(tensor.bytes)}"
        for tensor in tensors
    )
    return f"Where it needs most, the largest tensors are those of {named}. "


def _smaller_inputs(export: ExportEntry) -> str:
    if export.cache:
        return (
            f"that takes fewer tokens at once (max_seq_len is {export.max_seq_len}) or has a "
            "shorter cache"
        )
    if export.options.image_size:
        return f"of smaller images (image_size is {export.options.image_size})"
    return f"that takes fewer tokens (max_seq_len is {export.max_seq_len})"


def _delegated_share(name: str, method: Method, limit: float) -> Check:
    inside = sum(method.delegation.delegated.values())
    left = method.delegation.undelegated
    total = inside + sum(left.values())
    share = inside / total if total else 0.0
    problem = None
    if share < limit:
        counted = sorted(left.items(), key=lambda item: (-item[1], item[0]))
        needed, taken = inside, []
        for operator, count in counted:
            if needed >= limit * total:
                break
            needed += count
            taken.append(operator)
        calls = [f"{operator} ({count})" for operator, count in counted]
        # Rounded down, so that the suggested limit passes.
        passes = int(share * 10000) / 10000
        problem = (
            f"Delegates run {inside} of the {total} calls of the method {name}, {share:.1%}: "
            f"{100 * (limit - share):.2f} points below min_delegated_share = {limit:g}. "
            f"Left to kernels of the runtime, with calls: {_few(calls)}. "
            f"min_delegated_share = {passes:g} would pass, or a backend that takes {_few(taken)}."
        )
    return Check(f"delegated share of {name}", f"{share:.4f}", f"at least {limit:g}", problem)


def _operators(manifest: Manifest, allowed: Sequence[str], device: str | None) -> Check:
    patterns = [*PRIM_OPERATORS, *allowed]
    missing: collections.Counter[str] = collections.Counter()
    names = set()
    for method in manifest.methods.values():
        for operator, count in method.operators.items():
            names.add(operator)
            if not any(fnmatch.fnmatchcase(operator, pattern) for pattern in patterns):
                missing[operator] += count
    problem = None
    if missing:
        calls = [f"{operator} ({missing[operator]})" for operator in sorted(missing)]
        words = ", ".join(f'"{operator}"' for operator in sorted(missing))
        which = f"that the runtime of {device} lacks" if device else "that are not allowed"
        plain = ""
        if any(operator.startswith(_LLM) for operator in missing):
            plain = "export with custom_ops = [], "
        problem = (
            f"The program calls {len(missing)} operators {which}, with calls: "
            f"{', '.join(calls)}. It would pass with these in allowed_operators: {words}; or "
            f"{plain}build the app's runtime with them (executorch_operators), or lower for a "
            "backend that takes them."
        )
    outside = f"{len(missing)} of {len(names)}"
    return Check("operators not allowed", outside, f"{len(allowed)} allowed", problem)


def _few(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
