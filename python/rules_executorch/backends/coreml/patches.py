"""Bytes of Core ML delegates that depend on the model alone.

Rests on `executorch/backends/apple/coreml/compiler/coreml_preprocess.py`
(`CoreMLBackend.preprocess_model`), which draws an identifier at random, and on coremltools, which
draws others and writes the date.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

from executorch.backends.apple.coreml.compiler import CoreMLBackend

from rules_executorch.backends.coreml.package import canonical_package
from rules_executorch.compat.patch import replaced


@contextlib.contextmanager
def canonical_packages() -> Iterator[None]:
    """Rewrites each delegate once it is made; the model in it stays the same."""
    stock = CoreMLBackend.preprocess_model

    def preprocess_model(*args: Any, **kwargs: Any) -> Any:
        result = stock(*args, **kwargs)
        blob = canonical_package(result.processed_bytes)
        return dataclasses.replace(result, processed_bytes=blob)

    with replaced(CoreMLBackend, "preprocess_model", staticmethod(preprocess_model)):
        yield
