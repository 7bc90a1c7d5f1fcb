"""Writes what the rules and the docs say of backends and of options, from what the commands know.

    bazel run //tools/tables:update

The Starlark is nothing but literals, formatted as buildifier does it; a table of the docs stands
between two marks. Nothing here loads torch.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from rules_executorch.backends import NAMES, find_backend
from rules_executorch.backends.capabilities import BOOLEAN, STRING, Capabilities, Option
from rules_executorch.checkpoint.file_names import COMPANIONS, PICKLES, TOKENIZERS
from rules_executorch.checkpoint.tasks import GENERATION, TASKS, TEXT_TASKS
from rules_executorch.export import choices

RUN = "bazel run //tools/tables:update"
"""The command that writes."""
_BEGIN, _END = f"<!-- Written by `{RUN}`: {{}}. -->\n", "<!-- End. -->\n"

BACKENDS = [find_backend(name) for name in NAMES]


def literal(value: Any, indent: int = 0) -> str:
    """A value as Starlark, in the lines that buildifier leaves as they are."""
    if isinstance(value, bool) or value is None:
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int):
        return str(value)
    inner, end = " " * (indent + 4), " " * indent
    if isinstance(value, dict):
        rows = [f"{literal(k)}: {literal(v, indent + 4)}" for k, v in value.items()]
        return "{\n" + "".join(f"{inner}{row},\n" for row in rows) + end + "}" if rows else "{}"
    items = [literal(item) for item in value]
    line = f"[{', '.join(items)}]"
    if len(line) <= 60:
        return line
    return "[\n" + "".join(f"{inner}{item},\n" for item in items) + end + "]"


def struct(fields: dict[str, Any], indent: int) -> str:
    """A struct of Starlark."""
    inner = " " * (indent + 4)
    rows = [f"{inner}{name} = {literal(value, indent + 4)},\n" for name, value in fields.items()]
    return "struct(\n" + "".join(rows) + " " * indent + ")"


def _option(option: Option) -> str | list[str]:
    return "bool" if option.type == BOOLEAN else list(option.values) or option.type


def _row(backend: Capabilities) -> dict[str, Any]:
    options = {option.name: option for option in backend.options}
    return {
        "dtypes": backend.dtypes,
        "schemes": backend.schemes,
        "group_multiple": backend.group_multiple,
        "embedding_schemes": backend.embedding_schemes,
        "calibrated_schemes": backend.calibrated_schemes,
        "needs_calibration": backend.needs_calibration,
        "default_scheme": backend.default_scheme,
        "dynamic_shapes": backend.dynamic_shapes,
        "external_data": backend.external_data,
        "generation": backend.generation,
        "runs_on_host": backend.runs_on_host,
        "custom_kernels": backend.custom_kernels,
        "packages": backend.needs.group,
        "options": {name: _option(options[name]) for name in sorted(options)},
    }


def backends_bzl() -> str:
    """`executorch/private/tables/backends.bzl`."""
    rows = "".join(f"    {literal(b.name)}: {struct(_row(b), 4)},\n" for b in BACKENDS)
    return f'''"""What each backend can, so that a mistake is refused before anything is built.

Written by `{RUN}`; the fields are those of `Capabilities` in
python/rules_executorch/backends/capabilities.py. `packages` is the group of the toolchain that it
needs. An option has its type or, where few strings will do, those.
"""

visibility("//executorch/...")

BACKENDS = {{
{rows}}}

# Those whose weights can be in a data file beside the program.
EXTERNAL_DATA_BACKENDS = {literal([b.name for b in BACKENDS if b.external_data])}
'''


def options_bzl() -> str:
    """`executorch/private/tables/options.bzl`."""
    kernels = choices.CUSTOM_KERNELS
    grouped = [scheme.name for scheme in choices.SCHEMES.values() if scheme.grouped]
    constants: list[tuple[str, str, Any]] = [
        ("GENERATION", "", GENERATION),
        ("TASKS", "", list(TASKS)),
        ("TEXT_TASKS", "Those whose models take nothing but texts.", TEXT_TASKS),
        ("DTYPES", "", choices.DTYPES),
        ("INPUT_FORMS", "", choices.INPUT_FORMS),
        ("LOGITS", "", choices.LOGITS),
        ("CUSTOM_OPS", "", list(kernels)),
        ("CUSTOM_KERNELS", "Their kernels, as the runtime names them.", list(kernels.values())),
        ("QUANTIZATIONS", "", list(choices.SCHEMES)),
        ("GROUPED_QUANTIZATIONS", "Those that store weights in groups.", grouped),
        ("EMBEDDING_QUANTIZATIONS", "", list(choices.EMBEDDING_SCHEMES)),
        (
            "OTHER_QUANTIZATIONS",
            "Schemes of torchao that no backend here has kernels for, and why.",
            choices.OTHER_SCHEMES,
        ),
        ("PICKLES", "What torch.save and its kin write: loading it runs what is inside.", PICKLES),
        ("TOKENIZERS", "In the order of preference: the first that is there is read.", TOKENIZERS),
        ("COMPANIONS", "Belong to a tokenizer or to what comes before the model.", COMPANIONS),
    ]
    text = "".join(
        f"\n{f'# {comment}{chr(10)}' if comment else ''}{name} = {literal(value)}\n"
        for name, comment, value in constants
    )
    return f'''"""Values that the options of the actions may have, and names of files.

Written by `{RUN}`.
"""

visibility("//executorch/...")
{text}'''


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n".replace("|  |", "| |") for line in lines)


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _dtypes(backend: Capabilities) -> str:
    text = ", ".join(backend.dtypes)
    if backend.default_scheme:
        return f"{text}, computed in {backend.default_scheme}"
    return f"{text}, or int8 with `scheme`" if backend.calibrated_schemes else text


def takes() -> str:
    """What a backend takes."""
    head = ("backend", "dtypes", "sequence length", "programs", "`external_data`", "options")
    return table(
        head,
        (
            (
                f"`{backend.name}`",
                _dtypes(backend),
                "any" if backend.dynamic_shapes else "fixed",
                "any" if backend.generation else "without a cache",
                "yes" if backend.external_data else "no",
                _codes(option.name for option in backend.options),
            )
            for backend in BACKENDS
        ),
    )


_ANY = {BOOLEAN: "`True`, `False`", STRING: "any string"}


def options() -> str:
    """The options of all backends; those that are the same for several are one row."""
    rows: dict[Option, list[str]] = {}
    for backend in BACKENDS:
        for option in backend.options:
            rows.setdefault(option, []).append(backend.name)
    return table(
        ("backend", "option", "values", "what it does"),
        (
            (
                _codes(names),
                f"`{option.name}`",
                _codes(option.values) or _ANY[option.type],
                option.description,
            )
            for option, names in rows.items()
        ),
    )


def schemes() -> str:
    """Which backend takes which scheme of an export."""
    columns = [backend for backend in BACKENDS if backend.schemes or backend.embedding_schemes]
    rows = []
    for scheme in choices.SCHEMES.values():
        rows.append([f"`{scheme.name}`", scheme.says()])
        rows[-1] += [_shown(backend, scheme.name in backend.schemes) for backend in columns]
    for name in choices.EMBEDDING_SCHEMES:
        rows.append([f"embedding `{name}`", "rows looked up in the quantized matrix"])
        rows[-1] += [_shown(backend, name in backend.embedding_schemes) for backend in columns]
    head = ("scheme", "what it does", *(f"`{backend.name}`" for backend in columns), "others")
    return table(head, ((*row, "refused") for row in rows))


def _shown(backend: Capabilities, taken: bool) -> str:
    if not taken:
        return "refused"
    return "executed in CI" if backend.runs_on_host else "lowered in CI"


def filled(text: str, name: str, rows: str) -> str:
    """`text` with `rows` between the two marks of a table."""
    begin = _BEGIN.format(name)
    head, found, rest = text.partition(begin)
    _, end, tail = rest.partition(_END)
    if not (found and end):
        raise SystemExit(f"The docs need the lines {begin!r} and {_END!r}.")
    return f"{head}{begin}\n{rows}\n{_END}{tail}"


def _backends_md(text: str) -> str:
    return filled(filled(text, "takes", takes()), "options", options())


def _quantization_md(text: str) -> str:
    return filled(text, "schemes", schemes())


FILES: dict[str, Callable[[str], str]] = {
    "executorch/private/tables/backends.bzl": lambda _: backends_bzl(),
    "executorch/private/tables/options.bzl": lambda _: options_bzl(),
    "docs/backends.md": _backends_md,
    "docs/quantization.md": _quantization_md,
}
"""Each file by its path in the repository, and what it should hold given what it holds."""


def main(argv: Sequence[str]) -> int:
    """Writes the files into the checkout, or compares those below the working directory.

    Args:
        argv: `write` or `check`.

    Returns:
        1 if a file is out of date, which only `check` finds.
    """
    (mode,) = argv
    root = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."))
    stale = []
    for name, wanted in FILES.items():
        path = root / name
        before = path.read_text(encoding="utf-8")
        after = wanted(before)
        if before != after and mode == "write":
            path.write_text(after, encoding="utf-8")
        elif before != after:
            stale.append(name)
    if stale:
        print(
            f"{', '.join(stale)}: not what the commands say. Run `{RUN}`.",
            file=sys.stderr,
        )
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
