"""The bytes do not depend on the order in which Python hashes strings."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

_SCRIPT = """
import hashlib
import programs, torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from rules_executorch import compat
from rules_executorch.backends import find_backend

with torch.no_grad(), compat.patched_lowering(find_backend("xnnpack").patches):
    program = programs.llama(layers=1)
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    print(hashlib.sha256(edge.to_executorch().buffer).hexdigest())
"""


def _digest(seed: str) -> str:
    here = str(pathlib.Path(__file__).parent)
    path = os.pathsep.join([here, *filter(None, sys.path)])
    environment = dict(os.environ, PYTHONHASHSEED=seed, PYTHONPATH=path)
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], env=environment, stdout=subprocess.PIPE, check=True
    )
    return done.stdout.decode().split()[-1]


def test_hash_seeds_give_the_same_bytes() -> None:
    assert _digest("0") == _digest("12345")
