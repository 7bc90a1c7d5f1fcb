"""Core ML: CPU, GPU and neural engine of Apple's devices.

A delegate holds the model as a package, which the device compiles when it first loads it; the
compiled form needs macOS to make. Caches become Core ML states, so the least system is iOS 18 or
macOS 15.

Rests on `executorch.backends.apple.coreml` and coremltools 9.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rules_executorch.backends import passes
from rules_executorch.backends.backend import Backend
from rules_executorch.backends.capabilities import Option
from rules_executorch.backends.needs import Needs
from rules_executorch.compat import read_patches

if TYPE_CHECKING:
    from executorch.exir.backend.partitioner import Partitioner
    from executorch.exir.pass_manager import PassType

_INT8_WEIGHTS = {"mode": "linear_symmetric", "dtype": "int8", "granularity": "per_channel"}


def _partitioners(options: Mapping[str, Any]) -> list[Partitioner]:
    import coremltools
    from executorch.backends.apple.coreml.compiler import CoreMLBackend
    from executorch.backends.apple.coreml.partition import CoreMLPartitioner

    precision = options.get("compute_precision", "float16").upper()
    quantized = options.get("scheme") == "int8_weights"
    specs = CoreMLBackend.generate_compile_specs(
        compute_unit=coremltools.ComputeUnit[options.get("compute_units", "all").upper()],
        minimum_deployment_target=coremltools.target[options.get("deployment_target", "iOS18")],
        compute_precision=coremltools.precision[precision],
        model_type=CoreMLBackend.MODEL_TYPE.MODEL,
        op_linear_quantizer_config=_INT8_WEIGHTS if quantized else None,
    )
    return [CoreMLPartitioner(compile_specs=specs)]


def _passes(options: Mapping[str, Any]) -> list[PassType]:
    from rules_executorch.backends.coreml.index_put import ScatterAtFront

    return [ScatterAtFront()]


BACKEND = Backend(
    name="coreml",
    runtime_name="CoreMLBackend",
    dtypes=("float32", "float16"),
    partitioners=_partitioners,
    schemes=("4w", "8w"),
    embedding_schemes=("4w", "8w"),
    options=(
        Option(
            "compute_precision",
            "What the device computes in, whatever the program's dtype is; "
            "float16 by default, which the neural engine needs.",
            values=(
                "float16",
                "float32",
            ),
        ),
        Option(
            "compute_units",
            "The processors the system may choose from; all by default.",
            values=(
                "all",
                "cpu_and_gpu",
                "cpu_and_ne",
                "cpu_only",
            ),
        ),
        Option(
            "deployment_target",
            "The least system the program has to run on; iOS18 by default, "
            "which is the same as macOS15.",
            values=(
                "iOS18",
                "iOS26",
                "macOS15",
                "macOS26",
            ),
        ),
        Option(
            "scheme",
            "int8_weights: weights of linear layers and convolutions in int8, "
            "symmetric, one scale for each output channel.",
            values=("int8_weights",),
        ),
    ),
    needs=Needs(group="coreml", modules=("coremltools",)),
    edge_passes=_passes,
    patches=tuple(read_patches(__name__).values()),
    before=(
        passes.drop_overwritten_buffers,
        passes.spell_out_gelu,
    ),
    after=(passes.fuse_quantized_embeddings,),
)
