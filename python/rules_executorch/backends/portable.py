"""No delegation: every operator is one of the runtime's own kernels."""

from __future__ import annotations

from rules_executorch.backends import passes
from rules_executorch.backends.backend import Backend

BACKEND = Backend(
    name="portable",
    runtime_name=None,
    dtypes=("float32", "float16", "bfloat16"),
    runs_on_host=True,
    custom_kernels=False,
    partitioners=lambda options: [],
    embedding_schemes=("4w", "8w"),
    external_data=True,
    after=(passes.fuse_quantized_embeddings,),
)
