"""Ethos-U: Arm's neural processors for microcontrollers, which compute in integers.

The graph becomes TOSA, which Arm's compiler vela turns into a command stream for one processor.

Rests on `executorch.backends.arm.ethosu` and ethos-u-vela 5.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rules_executorch.backends import arm
from rules_executorch.backends.backend import Backend
from rules_executorch.backends.capabilities import Option

if TYPE_CHECKING:
    from executorch.backends.arm.ethosu import EthosUCompileSpec
    from executorch.exir.backend.partitioner import Partitioner
    from torchao.quantization.pt2e.quantizer import Quantizer

TARGETS = (
    "ethos-u55-32",
    "ethos-u55-64",
    "ethos-u55-128",
    "ethos-u55-256",
    "ethos-u65-256",
    "ethos-u65-512",
    "ethos-u85-128",
    "ethos-u85-256",
    "ethos-u85-512",
    "ethos-u85-1024",
    "ethos-u85-2048",
)


def _compile_spec(options: Mapping[str, Any]) -> EthosUCompileSpec:
    from executorch.backends.arm.ethosu import EthosUCompileSpec

    return EthosUCompileSpec(
        options.get("target", "ethos-u55-128"),
        system_config=options.get("system_config"),
        memory_mode=options.get("memory_mode"),
    )


def _partitioners(options: Mapping[str, Any]) -> list[Partitioner]:
    from executorch.backends.arm.ethosu import EthosUPartitioner

    return [EthosUPartitioner(_compile_spec(options))]


def _quantizer(options: Mapping[str, Any]) -> Quantizer:
    from executorch.backends.arm.quantizer import EthosUQuantizer

    return arm.int8(EthosUQuantizer(_compile_spec(options)))


BACKEND = Backend(
    name="ethos_u",
    runtime_name="EthosUBackend",
    dtypes=("float32",),
    partitioners=_partitioners,
    options=(
        Option(
            "memory_mode",
            "A memory mode of vela's configuration, for example Shared_Sram or "
            "Dedicated_Sram; by default the one usual for the processor.",
        ),
        arm.scheme(arm.INT8),
        Option(
            "system_config",
            "A system configuration of vela's, for example "
            "Ethos_U55_High_End_Embedded; by default the one usual for the processor.",
        ),
        Option(
            "target",
            "The processor and its multiply-accumulate units; ethos-u55-128 by default.",
            values=TARGETS,
        ),
    ),
    needs=arm.NEEDS,
    dynamic_shapes=False,
    generation=False,
    quantizer=_quantizer,
    calibrated_schemes=(arm.INT8,),
    default_scheme=arm.INT8,
    patches=tuple(arm.PATCHES.values()),
)
