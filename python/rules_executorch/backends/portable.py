"""No delegation: every operator is one of the runtime's own kernels."""

from __future__ import annotations

from executorch.exir import EdgeCompileConfig

from rules_executorch.backends.backend import Backend

BACKEND = Backend(
    name="portable",
    runtime_name=None,
    dtypes=("float32", "float16", "bfloat16"),
    partitioners=lambda options: [],
    # Operators outside the core set (of ATen) are what the runtime's kernel list is asked for later.
    compile_config=lambda: EdgeCompileConfig(_check_ir_validity=False),
    options_schema={"type": "object", "additionalProperties": False, "properties": {}},
)
