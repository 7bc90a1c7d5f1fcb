"""Qualcomm AI Engine Direct (QNN): the HTP of Snapdragon phones.

Rests on `executorch.backends.qualcomm`, whose own set-up downloads the SDK when nothing says where
one is. That is never let happen: without a folder the backend is refused first.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rules_executorch.backends import passes
from rules_executorch.backends.backend import Backend
from rules_executorch.backends.capabilities import Option
from rules_executorch.backends.needs import SDK_ROOT, Needs
from rules_executorch.compat import SPEED, Patch

if TYPE_CHECKING:
    from executorch.exir.backend.partitioner import Partitioner

SOCS = ("SM8550", "SM8650", "SM8750")
VARIABLE = "QNN_SDK_ROOT"


def _partitioners(options: Mapping[str, Any]) -> list[Partitioner]:
    os.environ[VARIABLE] = BACKEND.needs.sdk_root(options)
    from executorch.backends.qualcomm.partition.qnn_partitioner import QnnPartitioner
    from executorch.backends.qualcomm.serialization.qc_schema import QcomChipset
    from executorch.backends.qualcomm.utils.utils import (
        generate_htp_compiler_spec,
        generate_qnn_executorch_compiler_spec,
    )

    specs = generate_qnn_executorch_compiler_spec(
        soc_model=QcomChipset[options.get("soc", "SM8650")],
        backend_options=generate_htp_compiler_spec(use_fp16=True),
    )
    return [QnnPartitioner(specs)]


@contextlib.contextmanager
def own_qnn_variable() -> Iterator[None]:
    """Leaves the variable as it was."""
    before = os.environ.get(VARIABLE)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = before


BACKEND = Backend(
    name="qualcomm",
    runtime_name="QnnBackend",
    dtypes=("float32", "float16"),
    partitioners=_partitioners,
    options=(
        Option(SDK_ROOT, f"The folder of the SDK; {VARIABLE} without it."),
        Option(
            "soc",
            "The chip: SM8550 is Snapdragon 8 Gen 2, SM8650 8 Gen 3, SM8750 "
            "8 Elite; SM8650 by default.",
            values=SOCS,
        ),
    ),
    needs=Needs(
        sdk="the Qualcomm AI Engine Direct SDK (QAIRT)",
        variable=VARIABLE,
        files=("lib/x86_64-linux-clang/libQnnHtp.so",),
        how="It is on Qualcomm's software center, under its own licence; its "
        "lib/x86_64-linux-clang has to be on LD_LIBRARY_PATH.",
    ),
    dynamic_shapes=False,
    patches=(
        Patch(
            "own_qnn_variable",
            __name__,
            SPEED,
            "the SDK's folder is known to its code by an environment variable",
        ),
    ),
    before=(
        passes.drop_overwritten_buffers,
        passes.spell_out_gelu,
    ),
)
