"""TOSA: Arm's portable operator set, for tools and simulators that read its flatbuffer.

Rests on `executorch.backends.arm.tosa`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rules_executorch.backends import arm
from rules_executorch.backends.backend import Backend

if TYPE_CHECKING:
    from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
    from executorch.exir.backend.partitioner import Partitioner
    from torchao.quantization.pt2e.quantizer import Quantizer


def _compile_spec(options: Mapping[str, Any]) -> TosaCompileSpec:
    from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec

    return TosaCompileSpec(f"TOSA-1.0+{'INT' if 'scheme' in options else 'FP'}")


def _partitioners(options: Mapping[str, Any]) -> list[Partitioner]:
    from executorch.backends.arm.tosa.partitioner import TOSAPartitioner

    return [TOSAPartitioner(_compile_spec(options))]


def _quantizer(options: Mapping[str, Any]) -> Quantizer | None:
    if "scheme" not in options:
        return None
    from executorch.backends.arm.quantizer import TOSAQuantizer

    return arm.int8(TOSAQuantizer(_compile_spec(options)))


BACKEND = Backend(
    name="tosa",
    runtime_name="TOSABackend",
    dtypes=("float32",),
    partitioners=_partitioners,
    options=(arm.scheme(None),),
    needs=arm.NEEDS,
    dynamic_shapes=False,
    quantizer=_quantizer,
    calibrated_schemes=(arm.INT8,),
    patches=(arm.PATCHES["ordered_tosa_partitions"],),
)
