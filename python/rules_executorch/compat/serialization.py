"""Type hints of the classes of a program, looked up once.

Rests on `executorch/exir/_serialize/_dataclass.py` (`_DataclassEncoder`): writing a delegate asks
for the hints of each field of each value, and Python evaluates the annotations anew each time.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

from executorch.exir._serialize import _dataclass

from rules_executorch.compat.patch import replaced


@contextlib.contextmanager
def remembered_hints() -> Iterator[None]:
    """Remember the type hints of each class. The encoder only reads them."""
    hints = functools.cache(_dataclass.get_type_hints)
    with replaced(_dataclass, "get_type_hints", hints):
        yield
