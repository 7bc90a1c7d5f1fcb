"""Counting delegates while a backend compiles them.

Rests on `executorch/exir/backend/backend_api.py` (`lower_all_submodules_to_backend`), which hands a
backend all parts of a graph at once, and `backend_details.py` (`BackendDetails.preprocess`), which
compiles one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from executorch.exir.backend import backend_api
from executorch.exir.backend.backend_details import BackendDetails

from rules_executorch.action.progress import Progress
from rules_executorch.compat.patch import replaced

STAGE = "delegates"


@contextlib.contextmanager
def watched_delegates(progress: Progress, around: str) -> Iterator[None]:
    """Makes a stage of every time that a backend compiles its delegates.

    Args:
        progress: gets the stage `delegates`, a step for each.
        around: the stage that goes on after it.
    """
    stock = backend_api.lower_all_submodules_to_backend

    def lower_all(backend_id: str, submodules: Any, *args: Any, **kwargs: Any) -> Any:
        progress.stage(STAGE, sum(map(len, submodules.values())))
        with _counted(backend_id, progress):
            result = stock(backend_id, submodules, *args, **kwargs)
        # A backend may compile all at once, or in processes of its own.
        progress.finish_steps()
        progress.stage(around)
        return result

    with replaced(backend_api, "lower_all_submodules_to_backend", lower_all):
        yield


@contextlib.contextmanager
def _counted(backend_id: str, progress: Progress) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        # A worker that has imported a backend again, as MLX's is for each lowering, has several.
        for backend in BackendDetails.__subclasses__():
            if backend.__name__ == backend_id:
                counted = _counting(backend.preprocess, progress)
                stack.enter_context(replaced(backend, "preprocess", staticmethod(counted)))
        yield


def _counting(preprocess: Callable[..., Any], progress: Progress) -> Callable[..., Any]:
    def counted(*args: Any, **kwargs: Any) -> Any:
        result = preprocess(*args, **kwargs)
        progress.step()
        return result

    return counted
