"""The bytes do not depend on the order in which Python hashes strings."""

from __future__ import annotations

import hashlib
import os
import pathlib
import subprocess
import sys

import programs
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower

from rules_executorch import compat
from rules_executorch.backends import find_backend


def digest() -> str:
    """Of a program that is lowered by this process."""
    with torch.no_grad(), compat.patched_lowering(find_backend("xnnpack").patches):
        program = programs.llama(layers=1)
        edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
        return hashlib.sha256(edge.to_executorch().buffer).hexdigest()


def test_hash_seeds_give_the_same_bytes() -> None:
    here = str(pathlib.Path(__file__).parent)
    path = os.pathsep.join([here, *filter(None, sys.path)])
    seed = "4711" if os.environ.get("PYTHONHASHSEED") == "12345" else "12345"
    done = subprocess.run(
        [sys.executable, "-c", "import test_hash_seed; print(test_hash_seed.digest())"],
        env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        check=True,
    )
    assert done.stdout.decode().split()[-1] == digest()
