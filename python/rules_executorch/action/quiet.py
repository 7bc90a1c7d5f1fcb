"""Silences warnings of libraries that a user can do nothing about."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator

_LOGGERS = (
    "coremltools",
    "executorch.exir.pass_manager",
    "torch._export",
    "torch.export",
    "torch.utils._pytree",
    "torchao",
)


def _errors(record: logging.LogRecord) -> bool:
    """Lets errors pass; a filter stays when a library sets the level of its logger."""
    return record.levelno >= logging.ERROR


def quiet_libraries() -> None:
    """Silences them, but for errors. Call it before torch is imported.

    What they say otherwise:

    * torchao: each compiled extension built for other hardware.
    * torch's pytree, copyreg and exir: deprecations inside torchao, torch and exir.
    * exir: for every program, that the initial values of a cache are not stored.
    * coremltools: each part that exists on macOS only, progress bars, and that the infinity of a
      mask is one in float16 too. ExecuTorch's Core ML code: for every delegate, which systems run
      it.
    * ExecuTorch's Vulkan code lowers the level of the root logger and names each operator left to
      the CPU, which the report has. So INFO is off for all loggers.
    """
    logging.disable(logging.INFO)
    os.environ.setdefault("ET_COREML_LOG_LEVEL", "ERROR")
    os.environ.setdefault("TQDM_DISABLE", "1")
    for name in _LOGGERS:
        # Loggers below it inherit the level.
        logging.getLogger(name).setLevel(logging.ERROR)
        logging.getLogger(name).addFilter(_errors)
    warnings.filterwarnings("ignore", message=".*isinstance.treespec, LeafSpec.*")
    warnings.filterwarnings("ignore", message="Mutation on a buffer in the model is detected")
    warnings.filterwarnings("ignore", message="While compiling, we found certain side effects")
    warnings.filterwarnings("ignore", message="_check_is_size will be removed")
    warnings.filterwarnings("ignore", "overflow encountered in cast", module="coremltools")


@contextlib.contextmanager
def quiet_tracing() -> Iterator[None]:
    """Silences the tracer's warnings of side effects: the static cache is one, and meant."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()) as captured:
        warnings.simplefilter("ignore")
        try:
            yield
        except BaseException:
            captured.seek(0)
            raise


@contextlib.contextmanager
def quiet_loading() -> Iterator[None]:
    """Silences what C++ libraries write on standard error as they are loaded, unless it fails."""
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as captured:
        os.dup2(captured.fileno(), 2)
        try:
            yield
        except BaseException:
            captured.seek(0)
            os.write(saved, captured.read())
            raise
        finally:
            os.dup2(saved, 2)
            os.close(saved)
