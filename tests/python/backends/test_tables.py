"""What the commands say of themselves is so, and the tables that the rules read are made of it."""

from __future__ import annotations

import dataclasses
import pkgutil
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import tables
import torch

from rules_executorch import __version__, backends
from rules_executorch.common.schema import json_schema
from rules_executorch.export.choices import CUSTOM_KERNELS
from rules_executorch.export.options import ExportOptions, Quantization
from rules_executorch.program.operator_libraries import load_llm_operators

REPOSITORY = Path(__file__).parents[3]

WITHOUT_TORCH = """
import sys
sys.modules.update(dict.fromkeys(["torch", "executorch", "torchao", "transformers", "numpy"]))
import tables
assert tables.backends_bzl() and tables.options_bzl() and tables.schemes()
"""


def read(text: str) -> dict[str, Any]:
    """The values of a .bzl file that is nothing but literals, which Python reads the same way."""
    values: dict[str, Any] = {"visibility": lambda _: None, "struct": types.SimpleNamespace}
    exec(compile(text, "tables", "exec"), values)
    return values


def test_the_version_is_that_of_the_module() -> None:
    module = re.search(r"^module\((.*?)^\)", (REPOSITORY / "MODULE.bazel").read_text(), re.M | re.S)
    assert f'    version = "{__version__}",\n' in module[1]


def test_what_lies_among_the_backends_is_one_or_is_known_not_to_be() -> None:
    """A file that is neither would be found here, and a backend needs no other registration."""
    for module in pkgutil.iter_modules(backends.__path__):
        found = f"{backends.__name__}.{module.name}"
        if module.name in backends._SHARED:
            assert not hasattr(__import__(found, fromlist=["*"]), "BACKEND")
        else:
            assert backends.find_backend(module.name).name == module.name


def test_no_table_needs_torch() -> None:
    subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH], check=True, env={"PYTHONPATH": ":".join(sys.path)}
    )


def test_backends_that_run_here_say_so() -> None:
    """With the toolchain alone, or with a library that a device brings as packages."""
    found = [backends.find_backend(name) for name in backends.NAMES]
    here = {backend.name for backend in found if backend.runs_here()}
    brought = {backend.name for backend in found if backend.runtime_variables is not None}
    assert {backend.name for backend in found if backend.runs_on_host} == here | brought
    assert {b.name for b in found if b.custom_kernels is not None} == here - brought


def test_the_starlark_has_every_field_and_every_option() -> None:
    rows = read(tables.backends_bzl())["BACKENDS"]
    unknown_to_rules = {"name", "runtime_name", "operators", "needs"}
    fields = {field.name for field in dataclasses.fields(tables.Capabilities)} - unknown_to_rules
    for name in backends.NAMES:
        backend = backends.find_backend(name)
        assert vars(rows[name]).keys() == fields | {"packages"}
        assert rows[name].options.keys() == {option.name for option in backend.options}
        assert rows[name].packages == backend.needs.group


@pytest.mark.parametrize("name", backends.NAMES)
def test_schemes_that_a_backend_names_exist(name: str) -> None:
    backend = backends.find_backend(name)
    assert set(backend.schemes) <= set(tables.choices.SCHEMES)
    assert set(backend.embedding_schemes) <= set(tables.choices.EMBEDDING_SCHEMES)
    (values,) = [o.values for o in backend.options if o.name == "scheme"] or [()]
    assert set(backend.calibrated_schemes) | {backend.default_scheme} - {""} <= set(values)


def test_a_file_that_is_not_what_the_commands_say_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(tmp_path))
    for name in tables.FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((REPOSITORY / name).read_text())
    assert tables.main(["check"]) == 0
    stale = tmp_path / "executorch/private/tables/backends.bzl"
    stale.write_text(stale.read_text().replace("float16", "float8"))
    page = tmp_path / "docs/backends.md"
    page.write_text(page.read_text().replace("SM8750", "SM8850"))
    assert tables.main(["check"]) == 1
    said = capsys.readouterr().err
    assert "tables/backends.bzl, docs/backends.md" in said and tables.RUN in said
    assert tables.main(["write"]) == 0 and tables.main(["check"]) == 0


@pytest.mark.parametrize("kernel", CUSTOM_KERNELS.values())
def test_the_kernels_of_the_custom_operators_exist(kernel: str) -> None:
    load_llm_operators()
    namespace, name, overload = kernel.replace("::", ".").split(".")
    operator = getattr(getattr(torch.ops, namespace), name)
    assert overload in operator.overloads()


@pytest.mark.parametrize(
    ("constant", "option"),
    [
        ("TASKS", "task"),
        ("DTYPES", "dtype"),
        ("INPUT_FORMS", "input_form"),
        ("LOGITS", "logits"),
    ],
)
def test_an_option_has_the_same_values(constant: str, option: str) -> None:
    assert (
        read(tables.options_bzl())[constant]
        == json_schema(ExportOptions)["properties"][option]["enum"]
    )


def test_the_rule_writes_every_option_of_an_export_and_no_other() -> None:
    text = (REPOSITORY / "executorch/private/rules/export.bzl").read_text()
    (body,) = re.findall(r"^def _options\(.*?(?=^def )", text, re.M | re.S)
    fields = {
        field.name for kind in (ExportOptions, Quantization) for field in dataclasses.fields(kind)
    }
    assert set(re.findall(r'"(\w+)"(?:: |\] = )', body)) == fields
