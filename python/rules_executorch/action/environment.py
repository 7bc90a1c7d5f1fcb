"""What an action may see of the machine: no network, no HOME, fixed seeds and thread counts."""

from __future__ import annotations

import contextlib
import os
import random
import sys
from collections.abc import Iterator

from rules_executorch.common import guard

SEED = 0

# Each of these keeps a library from reading or writing outside of the action, or from starting
# threads.
_FIXED = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
}

_FOLDERS = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HF_HOME", "TORCHINDUCTOR_CACHE_DIR")

_DROPPED = ("HF_", "HUGGING", "TRANSFORMERS_", "TORCH", "PYTORCH_", "NETRC", "SSLKEYLOGFILE")


@contextlib.contextmanager
def isolated_variables() -> Iterator[str]:
    """Replaces HOME, caches, TMPDIR, proxies and the libraries' settings by fixed ones.

    Yields:
        The scratch folder that they point into; removed at the end, when the variables are
        restored, or with this process.
    """
    saved = dict(os.environ)
    with guard.temporary_files() as scratch:
        for name in saved:
            if name.startswith(_DROPPED) or name.lower().endswith("_proxy"):
                del os.environ[name]
        os.environ.update(_FIXED)
        os.environ["HOME"] = scratch
        for name in _FOLDERS:
            os.environ[name] = os.path.join(scratch, name.lower())
        try:
            yield scratch
        finally:
            os.environ.clear()
            os.environ.update(saved)


@contextlib.contextmanager
def hermetic() -> Iterator[str]:
    """Isolates the work of one action: variables, seed, and standard output.

    Standard output is pointed at standard error, since libraries print there on import and the
    worker protocol owns it.

    Yields:
        A scratch folder, removed at the end.
    """
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)
    random.seed(SEED)
    try:
        with isolated_variables() as scratch:
            yield scratch
    finally:
        sys.stdout.flush()
        os.dup2(stdout, 1)
        os.close(stdout)


def seed_torch() -> None:
    """Fixes torch's seed and thread count; called by the commands that import torch."""
    import torch

    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
