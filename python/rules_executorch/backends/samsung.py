"""Samsung Exynos: the NPU of Exynos chips, through the ENN SDK.

Rests on `executorch.backends.samsung`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rules_executorch.backends import passes
from rules_executorch.backends.backend import Backend
from rules_executorch.backends.capabilities import Option
from rules_executorch.backends.needs import SDK_ROOT, Needs

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
    options=(
        Option(
            "chipset",
            "The chip: E9955 is Exynos 2500, E9965 2600; E9955 by default.",
            values=CHIPSETS,
        ),
        Option(SDK_ROOT, f"The folder of the SDK; {VARIABLE} without it."),
    ),
    needs=Needs(
        sdk="Samsung's Exynos AI LiteCore SDK",
        variable=VARIABLE,
        modules=("executorch.backends.samsung.python.PyEnnWrapperAdaptor",),
        how="The SDK is on Samsung's Exynos developer site, under its own licence, and "
        "executorch has to be built from source with it, since its wheel has no Samsung part; "
        "register that build with executorch_toolchain.",
    ),
    dynamic_shapes=False,
    before=(
        passes.drop_overwritten_buffers,
        passes.spell_out_gelu,
    ),
)
