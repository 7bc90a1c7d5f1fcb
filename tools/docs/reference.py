"""Renders what Bazel's `starlark_doc_extract` finds as one Markdown page.

Reads the text form of `stardoc_output.ModuleInfo` (src/main/protobuf/stardoc_output.proto of
Bazel).
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Message = dict[str, list[Any]]

_HEAD = """# Rules

<!-- Written by `./bazelw run //docs:rules` out of //executorch; do not edit. -->
"""
_ORIGIN = "//executorch"


def parse(text: str) -> Message:
    """Parses a text-format message: every field becomes a list of its values."""
    return _message(iter(text.splitlines()))


def _message(lines: Iterator[str]) -> Message:
    found: Message = {}
    for line in lines:
        line = line.strip()
        if line == "}":
            break
        if line.endswith("{"):
            found.setdefault(line[:-1].strip(), []).append(_message(lines))
        elif line:
            name, _, value = line.partition(": ")
            found.setdefault(name, []).append(_scalar(value))
    return found


def _scalar(value: str) -> str:
    if not value.startswith('"'):
        return value
    return ast.literal_eval("b" + value).decode("utf-8")


def _first(message: Message, name: str, default: str = "") -> str:
    return message.get(name, [default])[0]


def _sentence(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _default(row: Message) -> str:
    if _first(row, "mandatory") == "true":
        return "required"
    return f"`{_first(row, 'default_value')}`"


def _attributes(owner: Message) -> Iterator[str]:
    rows = [row for row in owner.get("attribute", []) if _first(row, "name") != "name"]
    if not rows:
        return
    yield "| attribute | type | default | |"
    yield "| :-- | :-- | :-- | :-- |"
    for row in rows:
        kind = _first(row, "type").lower().replace("_", " ")
        default = _default(row)
        doc = _sentence(_first(row, "doc_string"))
        yield f"| `{_first(row, 'name')}` | {kind} | {default} | {doc} |"
    yield ""


def _fields(provider: Message) -> Iterator[str]:
    yield "| field | |"
    yield "| :-- | :-- |"
    for row in provider.get("field_info", []):
        yield f"| `{_first(row, 'name')}` | {_sentence(_first(row, 'doc_string'))} |"
    yield ""


def _function(function: Message) -> Iterator[str]:
    yield "| argument | default | |"
    yield "| :-- | :-- | :-- |"
    for row in function.get("parameter", []):
        default = _default(row)
        yield f"| `{_first(row, 'name')}` | {default} | {_sentence(_first(row, 'doc_string'))} |"
    yield ""


def render(module: Message) -> Iterator[str]:
    """Yields the lines of one file: its docstring, then each thing that it exports."""
    head, _, rest = _first(module, "module_docstring").partition("\n")
    yield f"## {head.rstrip('.')}"
    yield ""
    if rest.strip():
        yield rest.strip()
        yield ""
    for rule in module.get("rule_info", []):
        yield f"### `{_first(rule, 'rule_name')}`"
        yield ""
        yield _first(rule, "doc_string")
        yield ""
        yield from _attributes(rule)
    for provider in module.get("provider_info", []):
        yield f"### `{_first(provider, 'provider_name')}`"
        yield ""
        yield _first(provider, "doc_string").strip()
        yield ""
        yield from _fields(provider)
    for function in module.get("func_info", []):
        yield f"### `{_first(function, 'function_name')}`"
        yield ""
        yield _first(function, "doc_string").strip()
        yield ""
        yield from _function(function)
    for extension in module.get("module_extension_info", []):
        yield f"### `{_first(extension, 'extension_name')}`"
        yield ""
        yield _first(extension, "doc_string").strip()
        yield ""
        for tag in extension.get("tag_class", []):
            yield f"#### `{_first(extension, 'extension_name')}.{_first(tag, 'tag_name')}`"
            yield ""
            yield _first(tag, "doc_string").strip()
            yield ""
            yield from _attributes(tag)


def page(texts: list[str]) -> str:
    """The whole page out of the extracted files, in their order."""
    lines = [_HEAD]
    for text in texts:
        lines += render(parse(text))
    return "\n".join(lines).rstrip() + "\n"


def main(argv: list[str]) -> int:
    """Writes the page into the checkout, or compares it with what stands there."""
    mode, out, *extracted = argv
    found = page([Path(path).read_text(encoding="utf-8") for path in extracted])
    if mode == "write":
        Path(os.environ["BUILD_WORKSPACE_DIRECTORY"], out).write_text(found, encoding="utf-8")
        return 0
    if Path(out).read_text(encoding="utf-8") != found:
        print(f"{out} is not what the Starlark says. Run `./bazelw run //docs:rules`.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
