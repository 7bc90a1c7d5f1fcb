"""The source of a function or a class, found and compared without importing it.

A target is written `MODULE:QUALIFIED.NAME`, for example `torch.fx.graph:Graph.node_copy`. Its
source is read as text, so a package is never run to be looked at, one that is not installed for
this Python can be looked at too, and what a patch has replaced at the moment does not count.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import re
from collections.abc import Sequence

_DIGITS = 16


class NoSource(Exception):
    """A target is not there."""


def digest(target: str, folders: Sequence[str]) -> str:
    """A digest of the normalised source of a target.

    Args:
        target: `MODULE:QUALIFIED.NAME`.
        folders: where packages are, in the order they count, as in `sys.path`.

    Returns:
        The first 16 hexadecimal digits of a sha256.

    Raises:
        NoSource: there is no such module, or it defines no such name.
    """
    return _shortened(source(target, folders).encode())


def file_digest(module: str, folders: Sequence[str]) -> str:
    """The same of the whole file of a module, which takes no parsing.

    Raises:
        NoSource: there is no such module.
    """
    with open(_file(module, tuple(folders)), "rb") as file:
        return _shortened(file.read())


def source(target: str, folders: Sequence[str]) -> str:
    """The normalised source of a target.

    Comments on lines of their own, docstrings, empty lines and the indentation of the whole are
    left out, since nothing depends on them. A name that is defined more than once, as overloads
    are, has all of its definitions.

    Args:
        target: `MODULE:QUALIFIED.NAME`; a function, a class or what is assigned to a name.
        folders: where packages are.

    Raises:
        NoSource: there is no such module, or it defines no such name.
    """
    module, _, name = target.partition(":")
    text = _text(_file(module, tuple(folders)))
    # Where a name is looked for: below the line that defines its parent, to the parent's end.
    places = [(-1, len(text.lines))]
    parts = name.split(".")
    for part in parts[:-1]:
        places = [
            (index, text.end(index))
            for line, end in places
            for index in text.definitions(part, line + 1, end)
        ]
    found = [
        text.normalised(index)
        for line, end in places
        for index in text.definitions(parts[-1], line + 1, end)
    ]
    if not found:
        raise NoSource(f"there is no {target}")
    return "".join(found)


def _shortened(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGITS]


@functools.cache
def _file(module: str, folders: tuple[str, ...]) -> str:
    relative = module.replace(".", "/")
    for folder in folders:
        for name in (f"{relative}.py", f"{relative}/__init__.py"):
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                return path
    raise NoSource(f"there is no {module}")


@functools.cache
def _text(path: str) -> _Text:
    with open(path, encoding="utf-8") as file:
        return _Text(file.read().splitlines())


class _Text:
    """The lines of a file, and where definitions start and end. A definition is told by the index
    of its line with `def`, `class` or the name that is assigned to."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self._ends: dict[int, int] = {}

    def definitions(self, name: str, start: int, end: int) -> list[int]:
        """The outermost definitions of a name within some lines."""
        defining = re.compile(
            rf"\s*(?:(?:async\s+)?def|class)\s+{name}\b|\s*{name}\s*(?::[^=]*)?=(?!=)"
        )
        found = [
            index
            for index in range(start, end)
            if name in self.lines[index]
            and defining.match(self.lines[index])
            and self.end(index) > index
        ]
        outermost = min((_indent(self.lines[index]) for index in found), default=0)
        return [index for index in found if _indent(self.lines[index]) == outermost]

    def end(self, index: int) -> int:
        """The index of the line after a definition; its own if it is none.

        It ends before a line that is not deeper. Inside of brackets or of a string there may be
        such a line too: what is before it is then no statement.
        """
        if index not in self._ends:
            self._ends[index] = self._find_end(index)
        return self._ends[index]

    def _find_end(self, index: int) -> int:
        indent = _indent(self.lines[index])
        for below in range(index + 1, len(self.lines) + 1):
            if below < len(self.lines):
                line = self.lines[below]
                if not line.strip() or _indent(line) > indent or line.lstrip()[0] in ")]}#":
                    continue
            if _parsed(self.lines[index:below]) is not None:
                return below
        # A line of a text that looks like one.
        return index

    def _first_decorator(self, index: int) -> int:
        """The line of the first decorator of a definition, or its own."""
        indent, first, inside = _indent(self.lines[index]), index, False
        for above in range(index - 1, -1, -1):
            line = self.lines[above]
            if not line.strip() or _indent(line) < indent:
                break
            if _indent(line) > indent:
                if not inside:
                    break
            elif line.lstrip().startswith("@"):
                first, inside = above, False
            elif line.lstrip().startswith(")"):
                inside = True
            else:
                break
        return first

    def normalised(self, index: int) -> str:
        """The source of a definition without what nothing depends on."""
        lines = self.lines[self._first_decorator(index) : self.end(index)]
        tree = _parsed(lines)
        assert tree is not None, lines
        left_out: set[int] = set()
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                if ast.get_docstring(node, clean=False) is not None:
                    text = node.body[0]
                    left_out.update(range(text.lineno - 2, (text.end_lineno or 0) - 1))
        indent = _indent(lines[0])
        kept = []
        for number, line in enumerate(lines):
            bare = line.strip()
            if number not in left_out and bare and not bare.startswith("#"):
                kept.append((line[indent:] if not line[:indent].strip() else line).rstrip() + "\n")
        return "".join(kept)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _parsed(lines: Sequence[str]) -> ast.Module | None:
    """The syntax tree of indented lines, one line further down; None if they have none."""
    header = "if 1:" if _indent(lines[0]) else ""
    try:
        return ast.parse("\n".join([header, *lines]))
    except SyntaxError:
        return None
