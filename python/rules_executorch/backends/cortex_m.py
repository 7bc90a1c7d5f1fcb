"""Cortex-M: Arm's microcontrollers, with the int8 kernels of CMSIS-NN.

Nothing is delegated: quantized operators become `cortex_m::` operators that the firmware's runtime
registers.

Rests on `executorch.backends.cortex_m`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rules_executorch.backends import arm
from rules_executorch.backends.backend import Backend
from rules_executorch.backends.capabilities import Option

if TYPE_CHECKING:
    from executorch.exir import EdgeCompileConfig, EdgeProgramManager
    from torchao.quantization.pt2e.quantizer import Quantizer

TARGETS = (
    "cortex-m0plus",
    "cortex-m3",
    "cortex-m4",
    "cortex-m7",
    "cortex-m33",
    "cortex-m55",
    "cortex-m85",
)


def _compile_config() -> EdgeCompileConfig:
    from executorch.backends.cortex_m.edge_compile_config import cortex_m_edge_compile_config

    return cortex_m_edge_compile_config()


def _quantizer(options: Mapping[str, Any]) -> Quantizer:
    from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer

    # Convolutions of the usual layout are quantized with the explicit one alone.
    return CortexMQuantizer(use_explicit_layout=True)


def _call_cmsis_nn(edge: EdgeProgramManager, options: Mapping[str, Any]) -> None:
    from executorch.backends.cortex_m.passes.cortex_m_pass_manager import CortexMPassManager
    from executorch.backends.cortex_m.target_config import CortexMTargetConfig

    target = CortexMTargetConfig.from_target_string(options.get("target", "cortex-m55"))
    for name in edge.methods:
        edge._edge_programs[name] = CortexMPassManager(
            edge.exported_program(name), target_config=target, use_explicit_layout=True
        ).transform()


BACKEND = Backend(
    name="cortex_m",
    runtime_name=None,
    dtypes=("float32",),
    partitioners=lambda options: [],
    compile_config=_compile_config,
    options=(
        arm.scheme(arm.INT8),
        Option(
            "target",
            "The processor, which sets the sizes of scratch memory; cortex-m55 by default.",
            values=TARGETS,
        ),
    ),
    needs=arm.NEEDS,
    dynamic_shapes=False,
    generation=False,
    quantizer=_quantizer,
    calibrated_schemes=(arm.INT8,),
    default_scheme=arm.INT8,
    operators="cortex_m",
    after=(_call_cmsis_nn,),
)
