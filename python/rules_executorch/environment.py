"""What an action may see of the machine: no network, no HOME, fixed seeds and thread counts."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator

# Each of these makes one of the libraries look at, or write to, a place outside of the action.
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

SEED = 0


@contextlib.contextmanager
def hermetic() -> Iterator[str]:
    """Runs an action with a HOME and caches of its own, which are removed afterwards.

    Yields the scratch folder. Standard output is pointed at standard error for the duration
    (libraries print there on import), so that the worker protocol owns the real one.
    """
    saved = dict(os.environ)
    scratch = tempfile.mkdtemp(prefix="rules_executorch-")
    for name in list(os.environ):
        if name.startswith(("HF_", "HUGGING", "TRANSFORMERS_", "TORCH", "PYTORCH_")):
            del os.environ[name]
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NETRC"):
        os.environ.pop(name, None)
    os.environ.update(_FIXED)
    os.environ["HOME"] = scratch
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HF_HOME", "TORCHINDUCTOR_CACHE_DIR"):
        os.environ[name] = os.path.join(scratch, name.lower())
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)
    random.seed(SEED)
    try:
        yield scratch
    finally:
        sys.stdout.flush()
        os.dup2(stdout, 1)
        os.close(stdout)
        os.environ.clear()
        os.environ.update(saved)
        shutil.rmtree(scratch, ignore_errors=True)


def seed_torch() -> None:
    """Fixes torch's seed and thread count; called by the commands that import torch."""
    import torch

    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
