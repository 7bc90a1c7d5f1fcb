"""Samsung Exynos: the NPU of Exynos chips, through the ENN SDK.

Rests on `executorch.backends.samsung`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from executorch.exir import EdgeCompileConfig

from rules_executorch.backends.backend import SDK_ROOT, Backend, Needs

if TYPE_CHECKING:
    from executorch.exir.backend.partitioner import Partitioner

CHIPSETS = ("E9955", "E9965")
VARIABLE = "EXYNOS_AI_LITECORE_ROOT"


def _partitioners(options: Mapping[str, Any]) -> list[Partitioner]:
    from executorch.backends.samsung.partition.enn_partitioner import EnnPartitioner
    from executorch.backends.samsung.serialization.compile_options import (
        gen_samsung_backend_compile_spec,
    )

    return [EnnPartitioner([gen_samsung_backend_compile_spec(options.get("chipset", "E9955"))])]


BACKEND = Backend(
    name="samsung",
    runtime_name="EnnBackend",
    dtypes=("float32",),
    partitioners=_partitioners,
    compile_config=lambda: EdgeCompileConfig(_check_ir_validity=False),
    options_schema={
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "chipset": {
                "enum": list(CHIPSETS),
                "type": "string",
                "description": "The chip: E9955 is Exynos 2500, E9965 2600; E9955 by default.",
            },
            SDK_ROOT: {
                "type": "string",
                "description": f"The folder of the SDK; {VARIABLE} without it.",
            },
        },
    },
    needs=Needs(
        sdk="Samsung's Exynos AI LiteCore SDK",
        variable=VARIABLE,
        modules=("executorch.backends.samsung.python.PyEnnWrapperAdaptor",),
        how="The SDK is on Samsung's Exynos developer site, under its own licence, and "
        "executorch has to be built from source with it, since its wheel has no Samsung part; "
        "register that build with executorch_toolchain.",
    ),
    dynamic_shapes=False,
    drops_dead_state=True,
    computes_tanh_gelu=False,
)
