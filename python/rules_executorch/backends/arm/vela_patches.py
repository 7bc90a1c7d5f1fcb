"""Arm's compiler without its report on standard output.

Rests on `executorch/backends/arm/ethosu/backend.py`, which calls vela as a function.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from typing import Any

from executorch.backends.arm.ethosu import backend

from rules_executorch.compat.patch import replaced


@contextlib.contextmanager
def quiet_vela() -> Iterator[None]:
    """Keeps the report back, unless vela fails: it may say why."""
    stock = backend.vela_compile

    def vela_compile(*args: Any, **kwargs: Any) -> Any:
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said):
                return stock(*args, **kwargs)
        except BaseException:
            sys.stderr.write(said.getvalue())
            raise

    with replaced(backend, "vela_compile", vela_compile):
        yield
