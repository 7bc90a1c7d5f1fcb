"""No delegation: every operator is one of the runtime's own kernels."""

from __future__ import annotations

from executorch.exir import EdgeCompileConfig

from rules_executorch.backends.backend import Backend

BACKEND = Backend(
    name="portable",
    runtime_name=None,
    dtypes=("float32", "float16", "bfloat16"),
    partitioners=lambda options: [],
    embedding_schemes=("4w", "8w"),
    # Operators outside the core ATen set run too, if the runtime has a kernel for them.
    compile_config=lambda: EdgeCompileConfig(_check_ir_validity=False),
    external_data=True,
    options_schema={"type": "object", "additionalProperties": False, "properties": {}},
)
