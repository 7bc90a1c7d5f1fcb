"""MediaTek NeuroPilot: the NPU of Dimensity phones.

Rests on `executorch.backends.mediatek`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rules_executorch.backends import passes
from rules_executorch.backends.backend import Backend
from rules_executorch.backends.capabilities import Option
from rules_executorch.backends.needs import Needs

if TYPE_CHECKING:
    from executorch.exir.backend.partitioner import Partitioner

PLATFORMS = ("mt6989", "mt6991", "mt6993")


def _partitioners(options: Mapping[str, Any]) -> list[Partitioner]:
    from executorch.backends.mediatek import NeuropilotPartitioner
    from executorch.exir.backend.compile_spec_schema import CompileSpec

    platform = options.get("platform", "mt6991")
    return [NeuropilotPartitioner([CompileSpec("platform-config", platform.encode())])]


BACKEND = Backend(
    name="mediatek",
    runtime_name="NeuropilotBackend",
    dtypes=("float32",),
    partitioners=_partitioners,
    options=(
        Option(
            "platform",
            "The chip: mt6989 is Dimensity 9300, mt6991 9400, mt6993 9500; mt6991 by default.",
            values=PLATFORMS,
        ),
    ),
    needs=Needs(
        sdk="MediaTek's NeuroPilot Express SDK",
        modules=("mtk_converter", "mtk_neuron"),
        how="Install the wheels mtk_converter and mtk_neuron of MediaTek's NeuroPilot Express SDK "
        "(on MediaTek's NeuroPilot portal, under its own licence) into an environment of your "
        "own, and register it with executorch_toolchain.",
    ),
    dynamic_shapes=False,
    before=(
        passes.drop_overwritten_buffers,
        passes.spell_out_gelu,
    ),
)
