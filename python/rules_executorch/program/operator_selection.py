"""Operators that programs need, as ExecuTorch's selective build reads them.

Rests on `executorch.codegen.tools.gen_oplist`, which reads one program, and on the file it writes,
`selected_operators.yaml`; `torchgen.selective_build.selector.SelectiveBuilder` reads it.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from rules_executorch.common.errors import UserError

_HEADER_BYTES = 8


def select_operators(programs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Merges what several programs need.

    Args:
        programs: name and path of each program. The name stands in `debug_info` of the operators
            that the program calls.

    Returns:
        The content of `selected_operators.yaml`: under `operators` each operator, and under
        `et_kernel_metadata` the dtypes and dim orders that its kernels are called with.

    Raises:
        UserError: a file is not a program.
    """
    with contextlib.redirect_stdout(io.StringIO()):
        from executorch.codegen.tools import gen_oplist
        from torchgen.selective_build.selector import merge_et_kernel_metadata

        callers: dict[str, list[str]] = {}
        kernels: dict[str, list[str]] = {}
        for name, path in programs:
            _check_program(path)
            for operator in gen_oplist._get_operators(path):
                callers.setdefault(operator, []).append(name)
            kernels = merge_et_kernel_metadata(
                kernels, gen_oplist._get_kernel_metadata_for_model(path)
            )
    return {
        "build_features": [],
        "custom_classes": [],
        "et_kernel_metadata": dict(sorted(kernels.items())),
        "include_all_non_op_selectives": False,
        "include_all_operators": False,
        "kernel_metadata": {},
        "operators": {
            operator: {
                "debug_info": sorted(set(names)),
                "include_all_overloads": False,
                "is_root_operator": True,
                "is_used_for_training": True,
            }
            for operator, names in sorted(callers.items())
        },
    }


def render(selected: Mapping[str, Any]) -> str:
    """The same as YAML."""
    return yaml.safe_dump(dict(selected), default_flow_style=False)


def read_operator_names(paths: Iterable[str]) -> list[str]:
    """Names of the operators that files in this format select.

    Raises:
        UserError: a file is not in this format.
    """
    names: set[str] = set()
    for path in paths:
        again = "Give the file that executorch_operators or ExecuTorch's gen_oplist writes."
        name = os.path.basename(path)
        try:
            with open(path, encoding="utf-8") as file:
                selected = yaml.safe_load(file)
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise UserError(f"{name} is not YAML: {error}.", instead=again) from error
        if not isinstance(selected, dict) or not isinstance(selected.get("operators"), dict):
            raise UserError(f"{name} has no mapping `operators`.", instead=again)
        names.update(selected["operators"])
    return sorted(names)


def _check_program(path: str) -> None:
    # The reader of the wheel ends the process on a file that is no program.
    with open(path, "rb") as file:
        head = file.read(_HEADER_BYTES)
    if head[4:6] != b"ET":
        raise UserError(
            f"{path} is not a program of ExecuTorch: it does not have the file identifier ET.",
            instead="Give the .pte that executorch_lower writes, or build it again.",
        )
