"""The tool says which sources differ, and writes new digests when it is told to."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).absolute().parents[2]
TOOL = CHECKOUT / "tools/compat/check.py"
TARGET = "torch.fx.graph_module:GraphModule.recompile"


def _run(*arguments: object, checkout: Path = CHECKOUT) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-s", "-P", str(TOOL), *map(str, arguments)],
        env=os.environ | {"BUILD_WORKSPACE_DIRECTORY": str(checkout)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


def _doctored(folder: Path, module: str, old: str, new: str) -> Path:
    """A folder with one changed file of an installed package."""
    top, _, rest = module.partition(".")
    spec = importlib.util.find_spec(top)
    assert spec is not None and spec.submodule_search_locations
    relative = Path(*rest.split(".")).with_suffix(".py")
    text = Path(spec.submodule_search_locations[0], relative).read_text()
    assert text.count(old) == 1
    changed = folder / top / relative
    changed.parent.mkdir(parents=True)
    changed.write_text(text.replace(old, new))
    return folder


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """A line of a method differs."""
    return _doctored(
        tmp_path / "changed",
        "torch.fx.graph_module",
        "self._code = python_code.src",
        "self._code = str(python_code.src)",
    )


@pytest.fixture
def renamed(tmp_path: Path) -> Path:
    """A function has another name."""
    return _doctored(
        tmp_path / "renamed",
        "torch._export.utils",
        "def _materialize_cpp_cia_ops(",
        "def _register_cpp_cia_ops(",
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The tables alone."""
    for path in sorted(CHECKOUT.glob("python/rules_executorch/**/patches.json")):
        copy = tmp_path / "checkout" / path.relative_to(CHECKOUT)
        copy.parent.mkdir(parents=True)
        shutil.copy(path, copy)
    return tmp_path / "checkout"


def _tables(checkout: Path) -> dict[str, str]:
    return {
        str(path.relative_to(checkout)): path.read_text()
        for path in checkout.glob("python/rules_executorch/**/patches.json")
    }


def test_the_pinned_versions_are_those_of_the_patches() -> None:
    status, text = _run()
    # Nothing is left out, and no file has to be looked into when something is lowered.
    assert text.splitlines() == [text.strip()], text
    assert status == 0 and text.startswith("All sources are those that the ")


def test_a_virtual_environment_can_be_named() -> None:
    assert _run("--environment", sys.prefix) == _run()


def test_what_differs_is_named_with_its_patch(changed: Path) -> None:
    status, text = _run("--packages", changed)
    assert status == 1
    named = [line.partition(" ")[0] for line in text.splitlines() if " sources differ" in line]
    assert named == ["deferred_recompile"]
    assert "deferred_recompile (speed): 1 of " in text
    assert f"it replaces {TARGET}:" in text
    assert "-        self._code = python_code.src\n" not in text, "as it is indented in the class"
    assert "    -    self._code = python_code.src\n" in text
    assert "    +    self._code = str(python_code.src)\n" in text
    assert "upstream: https://github.com/pytorch/pytorch/pull/" in text


def test_what_is_gone_is_said(renamed: Path) -> None:
    status, text = _run("--packages", renamed)
    assert status == 1
    assert "single_registration (speed): 1 of 3 sources differ" in text
    assert "it is not there any more" in text


def test_a_file_that_differs_elsewhere_is_no_fault(tmp_path: Path) -> None:
    other = _doctored(
        tmp_path / "other", "torch.fx.traceback", "import copy\n", "import copy\nimport cmath\n"
    )
    status, text = _run("--packages", other)
    assert status == 0
    assert "torch.fx.traceback: the file differs, the sources in it do not" in text


def test_updating_to_the_same_version_changes_nothing(checkout: Path) -> None:
    before = _tables(checkout)
    assert _run("--update", checkout=checkout) == (0, "")
    assert _tables(checkout) == before


def test_updating_writes_what_differs_and_nothing_else(checkout: Path, changed: Path) -> None:
    before = _tables(checkout)
    assert _run("--packages", changed, "--update", checkout=checkout) == (0, "")
    assert _run("--packages", changed, checkout=checkout)[0] == 0
    after = _tables(checkout)
    assert [name for name in after if after[name] != before[name]] == [
        "python/rules_executorch/compat/patches.json"
    ]
    (name,) = [name for name in after if after[name] != before[name]]
    old, new = (json.loads(tables[name]) for tables in (before, after))
    for patch in (old, new):
        assert patch["patches"]["deferred_recompile"]["replaces"].pop(TARGET)
        assert patch["files"].pop("torch.fx.graph_module")
    assert old == new


def test_nothing_is_written_while_a_source_is_gone(checkout: Path, renamed: Path) -> None:
    before = _tables(checkout)
    status, text = _run("--packages", renamed, "--update", checkout=checkout)
    assert status == 1
    assert "there is no torch._export.utils:_materialize_cpp_cia_ops" in text
    assert _tables(checkout) == before


@pytest.mark.parametrize("option", ["--packages", "--environment"])
def test_a_folder_that_is_not_there_is_refused(option: str, tmp_path: Path) -> None:
    status, text = _run(option, tmp_path / "none")
    assert status == 2
    assert "is not a folder" in text
