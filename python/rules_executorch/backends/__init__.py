"""One vendor each: what a backend can and needs, its partitioner, its passes and patches."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

from rules_executorch.backends.backend import Backend, Needs
from rules_executorch.common.errors import UserError

__all__ = [
    "Backend",
    "NAMES",
    "Needs",
    "RUNTIME_LIBRARIES",
    "check_options",
    "find_backend",
    "prepare_runtime",
]

NAMES: tuple[str, ...] = (
    "portable",
    "xnnpack",
    "coreml",
    "cortex_m",
    "ethos_u",
    "mediatek",
    "mlx",
    "openvino",
    "qualcomm",
    "samsung",
    "tosa",
    "vulkan",
    "webgpu",
)
"""Each has a module of its name here, with a `BACKEND`."""

RUNTIME_LIBRARIES: Mapping[str, str] = {"OpenvinoBackend": "openvino"}
"""Backends, as the runtime registers them, that load a vendor's library, to their name here."""


def find_backend(name: str) -> Backend:
    """Gives a backend.

    Raises:
        UserError: there is none of this name.
    """
    if name not in NAMES:
        raise UserError(
            f"There is no backend {name!r}.",
            instead=f"Write backend = one of {', '.join(NAMES)}.",
        )
    return importlib.import_module(f"{__name__}.{name}").BACKEND


def prepare_runtime(runtime_names: Iterable[str]) -> None:
    """Lets the runtime of this process find the libraries of the backends of a program.

    Args:
        runtime_names: the program's backends, as the runtime registers them.
    """
    for name in runtime_names:
        if name in RUNTIME_LIBRARIES:
            find_backend(RUNTIME_LIBRARIES[name]).prepare_runtime()


def check_options(backend: Backend, options: dict[str, Any]) -> None:
    """Checks the options of a backend against its schema.

    Raises:
        UserError: it has no such option, or the value is not one that the option takes.
    """
    import jsonschema

    known = backend.options_schema.get("properties", {})
    for name in options:
        if name not in known:
            has = f"It has {', '.join(sorted(known))}." if known else "It has none."
            raise UserError(f"The backend {backend.name} has no option {name!r}. {has}")
    problems = sorted(
        jsonschema.Draft202012Validator(backend.options_schema).iter_errors(options),
        key=lambda error: list(map(str, error.absolute_path)),
    )
    if problems:
        where = ".".join(map(str, problems[0].absolute_path)) or "options"
        raise UserError(
            f"The option {where} of the backend {backend.name} is not valid: {problems[0].message}."
        )
