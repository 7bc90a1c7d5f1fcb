"""One vendor each: what a backend can and needs, its partitioner, its passes and patches."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from typing import Any

from rules_executorch.backends.backend import Backend
from rules_executorch.backends.needs import Needs
from rules_executorch.common.errors import UserError
from rules_executorch.common.schema import find_problem

__all__ = [
    "Backend",
    "NAMES",
    "Needs",
    "check_options",
    "find_backend",
    "library_backends",
    "prepare_runtime",
]

_SHARED = ("arm", "backend", "capabilities", "needs", "passes")
"""What lies here and is no backend."""

NAMES: tuple[str, ...] = tuple(
    sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name not in _SHARED)
)
"""Each is a module here, with a `BACKEND` of its name; it loads neither torch nor executorch."""


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


def library_backends() -> list[str]:
    """Backends that load a vendor's library, as the runtime registers them."""
    backends = map(find_backend, NAMES)
    return [
        found.runtime_name
        for found in backends
        if found.runtime_variables is not None and found.runtime_name is not None
    ]


def prepare_runtime(runtime_names: Iterable[str]) -> None:
    """Lets the runtime of this process find the libraries of the backends of a program.

    Args:
        runtime_names: the program's backends, as the runtime registers them.
    """
    wanted = set(runtime_names)
    for backend in map(find_backend, NAMES):
        if backend.runtime_name in wanted:
            backend.prepare_runtime()


def check_options(backend: Backend, options: dict[str, Any]) -> None:
    """Checks the options of a backend against its schema.

    Raises:
        UserError: it has no such option, or the value is not one that the option takes.
    """
    known = backend.options_schema.get("properties", {})
    for name in options:
        if name not in known:
            has = f"It has {', '.join(sorted(known))}." if known else "It has none."
            raise UserError(f"The backend {backend.name} has no option {name!r}. {has}")
    problem = find_problem(backend.options_schema, options)
    if problem is not None:
        raise UserError(
            f"The option {problem.where} of the backend {backend.name} is not valid:"
            f" {problem.message}."
        )
