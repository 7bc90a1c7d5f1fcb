"""What the rules know in Starlark agrees with what the commands know in Python."""

import json
import re
import types
from importlib import resources
from pathlib import Path

import pytest
import torch

from rules_executorch import __version__, backends
from rules_executorch.export import quantize
from rules_executorch.export.adapters import custom_ops
from rules_executorch.program.operator_libraries import load_llm_operators

REPOSITORY = Path(__file__).parents[3]
TABLES = REPOSITORY / "executorch" / "private" / "tables"

TYPES = {"boolean": "bool", "integer": "int", "string": "string", "array": "list"}


def starlark(name):
    """The values of a .bzl file that is nothing but literals, which Python reads the same way."""
    values = {"visibility": lambda _: None, "struct": types.SimpleNamespace}
    exec(compile((TABLES / name).read_text(), name, "exec"), values)
    return values


def schema(name):
    text = resources.files("rules_executorch").joinpath(f"schema/{name}.schema.json").read_text()
    return json.loads(text)["properties"]


def test_the_version_is_that_of_the_module():
    module = re.search(r"^module\((.*?)^\)", (REPOSITORY / "MODULE.bazel").read_text(), re.M | re.S)
    assert f'    version = "{__version__}",\n' in module[1]


def test_backends_are_the_same():
    assert set(starlark("backends.bzl")["BACKENDS"]) == set(backends.NAMES)


def test_backends_that_run_here_are_the_same():
    """With the toolchain alone, or with a library that a device brings as packages."""
    here = {name for name in backends.NAMES if backends.find_backend(name).runs_here()}
    brought = set(backends.RUNTIME_LIBRARIES.values())
    table = starlark("backends.bzl")
    assert set(table["HOST_BACKENDS"]) == here | brought
    assert set(table["CPU_BACKENDS"]) == here - brought


def test_backends_with_a_library_are_found_by_the_name_in_a_program():
    libraries = {
        backend.runtime_name: backend.name
        for backend in map(backends.find_backend, backends.NAMES)
        if backend.runtime_variables is not None
    }
    assert libraries == backends.RUNTIME_LIBRARIES


@pytest.mark.parametrize("kernel", starlark("options.bzl")["CUSTOM_KERNELS"])
def test_the_kernels_of_the_custom_operators_exist(kernel):
    load_llm_operators()
    namespace, name, overload = kernel.replace("::", ".").split(".")
    operator = getattr(getattr(torch.ops, namespace), name)
    assert overload in operator.overloads()


@pytest.mark.parametrize("name", backends.NAMES)
def test_a_backend_has_the_same_options_and_dtypes(name):
    table = starlark("backends.bzl")["BACKENDS"][name]
    backend = backends.find_backend(name)
    options = backend.options_schema["properties"]
    assert table.options == {
        key: value.get("enum", TYPES[value["type"]]) for key, value in options.items()
    }
    assert tuple(table.dtypes) == backend.dtypes
    assert tuple(table.calibrated_schemes) == backend.calibrated_schemes
    assert table.default_scheme == backend.default_scheme
    assert table.dynamic_shapes == backend.dynamic_shapes
    assert table.external_data == backend.external_data
    assert table.generation == backend.generation
    assert tuple(table.schemes) == backend.schemes
    assert tuple(table.embedding_schemes) == backend.embedding_schemes
    others = starlark("backends.bzl")
    assert (name in others["CALIBRATED_WITH_DATA"]) == backend.needs_calibration
    assert others["GROUP_MULTIPLES"].get(name, 1) == backend.group_multiple


@pytest.mark.parametrize(
    ("constant", "option"),
    [
        ("TASKS", "task"),
        ("DTYPES", "dtype"),
        ("INPUT_FORMS", "input_form"),
        ("LOGITS", "logits"),
    ],
)
def test_an_option_has_the_same_values(constant, option):
    assert starlark("options.bzl")[constant] == schema("export")[option]["enum"]


def test_operators_and_schemes_are_the_same():
    options = starlark("options.bzl")
    assert tuple(options["CUSTOM_OPS"]) == custom_ops.CUSTOM_OPS
    assert options["QUANTIZATIONS"] == list(quantize.SCHEMES)
    assert options["OTHER_QUANTIZATIONS"] == quantize.OTHER_SCHEMES
    grouped = {name for name, scheme in quantize.SCHEMES.items() if scheme.grouped}
    assert set(starlark("backends.bzl")["GROUPED_SCHEMES"]) == grouped
    assert options["EMBEDDING_QUANTIZATIONS"] == list(quantize.EMBEDDING_SCHEMES)
