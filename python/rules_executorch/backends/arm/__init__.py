"""What the backends of Arm have in common: packages and quantizers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rules_executorch.backends.capabilities import Option
from rules_executorch.backends.needs import Needs
from rules_executorch.compat import read_patches

if TYPE_CHECKING:
    from torchao.quantization.pt2e.quantizer import Quantizer

NEEDS = Needs(group="arm", modules=("tosa", "ethosu.vela", "ml_dtypes"))

PATCHES = read_patches(__name__)
"""By name: what Ethos-U has and TOSA has not is `quiet_vela`."""

INT8 = "int8"


def int8(quantizer: Any) -> Quantizer:
    """Sets a TOSA quantizer to int8: activations per tensor, weights per channel."""
    from executorch.backends.arm.quantizer import get_symmetric_quantization_config

    return quantizer.set_global(get_symmetric_quantization_config()) or quantizer


def scheme(default: str | None) -> Option:
    """The option that asks for int8."""
    end = "the default" if default else "without it the program stays in floating point"
    return Option(
        "scheme", f"int8: activations and weights in int8, calibrated; {end}.", values=(INT8,)
    )
