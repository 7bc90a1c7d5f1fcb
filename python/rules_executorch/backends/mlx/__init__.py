"""MLX: the GPU of Apple silicon.

Rests on `executorch.backends.mlx`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rules_executorch.backends import passes
from rules_executorch.backends.backend import Backend
from rules_executorch.compat import read_patches

if TYPE_CHECKING:
    from executorch.exir.backend.partitioner import Partitioner


def _partitioners(options: Mapping[str, Any]) -> list[Partitioner]:
    from executorch.backends.mlx.partitioner import MLXPartitioner

    return [MLXPartitioner()]


BACKEND = Backend(
    name="mlx",
    runtime_name="MLXBackend",
    dtypes=("float32", "float16", "bfloat16"),
    partitioners=_partitioners,
    schemes=("4w", "8w"),
    group_multiple=32,
    embedding_schemes=("4w", "8w"),
    external_data=True,
    patches=tuple(read_patches(__name__).values()),
    before=(passes.drop_overwritten_buffers,),
    after=(passes.fuse_quantized_embeddings,),
)
