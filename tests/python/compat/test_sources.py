"""Sources are found as text, and compared without what nothing depends on."""

from __future__ import annotations

import inspect
import textwrap
from pathlib import Path

import pytest
from executorch.exir.pass_base import _ExportPassBase
from torch.fx import Graph, GraphModule

from rules_executorch.compat.sources import NoSource, digest, file_digest, source

MODULE = '''\
"""A module."""
import functools

LIMIT: int = 3  # how many
TABLE = {
    "a": 1,
}
TABLE["b"] = 2


@functools.lru_cache(
    maxsize=None,
)
@functools.wraps(print)
def outer(
    value,
) -> int:
    """A docstring.

    def inner(): of the docstring
    """
    # A comment.
    text = """
not deeper, and still inside
"""

    def inner():
        return text

    return value


class Plain:
    """A class."""

    limit = 4

    def method(self):
        return 1

    def inner(self):
        return 2


def method():
    return 3


def other():
    return 4
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "package").mkdir()
    (tmp_path / "package/module.py").write_text(MODULE)
    (tmp_path / "package/__init__.py").write_text("def here():\n    return 1\n")
    return tmp_path


def _source(folder: Path, name: str) -> str:
    return source(f"package.module:{name}", [str(folder)])


def test_a_function_comes_with_its_decorators_and_without_comments(folder: Path) -> None:
    text = _source(folder, "outer")
    assert text.startswith(
        "@functools.lru_cache(\n    maxsize=None,\n)\n@functools.wraps(print)\ndef"
    )
    assert text.endswith("    return value\n")
    assert "not deeper" in text
    assert "docstring" not in text and "comment" not in text


def test_a_name_belongs_to_what_it_is_defined_in(folder: Path) -> None:
    assert _source(folder, "Plain.method") == "def method(self):\n    return 1\n"
    assert _source(folder, "method") == "def method():\n    return 3\n"
    assert _source(folder, "outer.inner") == "def inner():\n    return text\n"
    assert _source(folder, "Plain.inner") == "def inner(self):\n    return 2\n"
    assert "class Plain:\n    limit = 4\n" in _source(folder, "Plain")


def test_what_is_assigned_is_a_source(folder: Path) -> None:
    assert _source(folder, "LIMIT") == "LIMIT: int = 3  # how many\n"
    assert _source(folder, "TABLE") == 'TABLE = {\n    "a": 1,\n}\n'
    assert _source(folder, "Plain.limit") == "limit = 4\n"


def test_a_package_is_its_init_file(folder: Path) -> None:
    assert source("package:here", [str(folder)]) == "def here():\n    return 1\n"


def test_earlier_folders_hide_later_ones(folder: Path, tmp_path: Path) -> None:
    above = tmp_path / "above"
    (above / "package").mkdir(parents=True)
    (above / "package/module.py").write_text("def method():\n    return 5\n")
    both = [str(above), str(folder)]
    assert source("package.module:method", both) == "def method():\n    return 5\n"
    assert digest("package.module:method", both) != digest("package.module:method", [str(folder)])


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("# A comment.", "# Another\n\n    # one.", True),
        ("A docstring.", "Another text.", True),
        ("    return value", "    return value + 1", False),
        ("maxsize=None", "maxsize=1", False),
        ("not deeper", "not deeper at all", False),
        ("return 4", "return 5", True),
    ],
)
def test_what_changes_a_digest(folder: Path, old: str, new: str, same: bool) -> None:
    before = digest("package.module:outer", [str(folder)])
    changed = folder / "changed"
    (changed / "package").mkdir(parents=True)
    assert MODULE.count(old) == 1
    (changed / "package/module.py").write_text(MODULE.replace(old, new))
    assert (digest("package.module:outer", [str(changed)]) == before) is same
    assert file_digest("package.module", [str(changed)]) != file_digest(
        "package.module", [str(folder)]
    )


@pytest.mark.parametrize("target", ["package.none:method", "package.module:none", "none:none"])
def test_what_is_not_there_is_said(folder: Path, target: str) -> None:
    with pytest.raises(NoSource, match="there is no"):
        source(target, [str(folder)])


@pytest.mark.parametrize(
    "thing",
    [GraphModule.recompile, GraphModule.__deepcopy__, Graph.create_node, _ExportPassBase._fx],
    ids=lambda thing: thing.__qualname__,
)
def test_it_is_what_python_says(thing: object) -> None:
    """Compared with `inspect`, whose text has comments and docstrings too."""
    site = Path(inspect.getfile(thing)).as_posix()  # type: ignore[arg-type]
    root = site[: site.index("/" + thing.__module__.partition(".")[0] + "/")]
    found = source(f"{thing.__module__}:{thing.__qualname__}", [root]).splitlines()
    expected = textwrap.dedent(inspect.getsource(thing)).splitlines()  # type: ignore[arg-type]
    rest = iter(line.rstrip() for line in expected)
    assert all(line in rest for line in found), "lines that are not there, or in another order"
    assert found[0] == expected[0] and found[-1] == expected[-1].rstrip()
