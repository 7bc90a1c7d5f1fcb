"""OpenVINO: Intel's CPUs, GPUs and NPUs.

Rests on `executorch.backends.openvino` and OpenVINO 2025.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rules_executorch.action.quiet import quiet_loading
from rules_executorch.backends import passes
from rules_executorch.backends.backend import Backend
from rules_executorch.backends.capabilities import Option
from rules_executorch.backends.needs import Needs

if TYPE_CHECKING:
    from executorch.exir.backend.partitioner import Partitioner


def _partitioners(options: Mapping[str, Any]) -> list[Partitioner]:
    from executorch.exir.backend.compile_spec_schema import CompileSpec

    # Its package loads the tokenizers, which say so.
    with quiet_loading():
        from executorch.backends.openvino.partitioner import OpenvinoPartitioner

    return [OpenvinoPartitioner([CompileSpec("device", options.get("device", "CPU").encode())])]


def _runtime_variables() -> dict[str, str]:
    """Where the runtime finds OpenVINO's C library: in its Python package, if that is installed.

    A program does not say how exactly it is to be computed, so on a CPU with instructions for
    bfloat16 OpenVINO would round every float32 matrix to it. Without them it stays with float32,
    and can be compared with eager.
    """
    spec = importlib.util.find_spec("openvino")
    if spec is None or spec.origin is None:
        return {}
    libraries = sorted((Path(spec.origin).parent / "libs").glob("libopenvino_c.so*"))
    if not libraries:
        return {}
    return {"OPENVINO_LIB_PATH": str(libraries[0]), "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_VNNI"}


BACKEND = Backend(
    name="openvino",
    runtime_name="OpenvinoBackend",
    dtypes=("float32", "float16"),
    runs_on_host=True,
    partitioners=_partitioners,
    options=(
        Option(
            "device",
            "The processor that the program is compiled for; CPU by default. "
            "Another needs its driver where the program is lowered.",
            values=(
                "CPU",
                "GPU",
                "NPU",
            ),
        ),
    ),
    needs=Needs(group="openvino", modules=("openvino", "nncf")),
    dynamic_shapes=False,
    runtime_variables=_runtime_variables,
    before=(passes.drop_overwritten_buffers,),
)
