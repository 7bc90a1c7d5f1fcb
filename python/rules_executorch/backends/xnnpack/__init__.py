"""XNNPACK: floating-point and quantized kernels for arm64, x86-64 and WebAssembly CPUs.

Rests on `executorch.backends.xnnpack.partition.xnnpack_partitioner`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rules_executorch.backends import passes
from rules_executorch.backends.backend import Backend
from rules_executorch.backends.capabilities import BOOLEAN, Option
from rules_executorch.compat import read_patches

if TYPE_CHECKING:
    from executorch.exir.backend.partitioner import Partitioner
    from torchao.quantization.pt2e.quantizer import Quantizer

_STATIC, _DYNAMIC = "int8", "int8_dynamic"


def _partitioners(options: Mapping[str, Any]) -> list[Partitioner]:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    return [
        XnnpackPartitioner(
            per_op_mode=options.get("per_op_mode", False),
            force_non_static_weights_for_f32_linear=options.get("non_static_weights", False),
        )
    ]


def _quantized_partitioners(options: Mapping[str, Any]) -> list[Partitioner]:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
        XnnpackDynamicallyQuantizedPartitioner,
    )

    # The linear layers with dynamically quantized inputs go first, each with the operators that
    # quantize its input; together with its neighbours such a layer would not be recognised.
    return [XnnpackDynamicallyQuantizedPartitioner(), *_partitioners(options)]


def _quantizer(options: Mapping[str, Any]) -> Quantizer | None:
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )

    scheme = options.get("scheme")
    if scheme is None:
        return None
    return XNNPACKQuantizer().set_global(
        get_symmetric_quantization_config(is_per_channel=True, is_dynamic=scheme == _DYNAMIC)
    )


BACKEND = Backend(
    name="xnnpack",
    runtime_name="XnnpackBackend",
    dtypes=("float32", "float16"),
    runs_on_host=True,
    custom_kernels=True,
    partitioners=_partitioners,
    schemes=("8da4w", "8da8w"),
    group_multiple=32,
    embedding_schemes=("4w", "8w"),
    quantized_partitioners=_quantized_partitioners,
    quantizer=_quantizer,
    calibrated_schemes=(_STATIC,),
    needs_calibration=True,
    external_data=True,
    patches=tuple(read_patches(__name__).values()),
    options=(
        Option(
            "per_op_mode",
            "One delegate for each operator, for finding the one that is wrong.",
            BOOLEAN,
        ),
        Option(
            "scheme",
            "int8: activations and weights in int8, calibrated, for programs "
            "without a cache; int8_dynamic: weights of linear layers and convolutions in int8, "
            "one scale for each output channel, and the ranges of their inputs found as the "
            "program runs. Without it the program stays as it was exported.",
            values=(
                _STATIC,
                _DYNAMIC,
            ),
        ),
        Option(
            "non_static_weights",
            "Weights of float32 linear layers are inputs of the delegate "
            "instead of packed into it.",
            BOOLEAN,
        ),
    ),
    before=(passes.spell_out_gelu,),
    after=(passes.fuse_quantized_embeddings,),
)
