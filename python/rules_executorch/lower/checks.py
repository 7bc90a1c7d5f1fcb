"""What a backend cannot lower, refused before any time is spent on it.

The rules refuse the same as far as they know it when a target is analysed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rules_executorch.backends import Backend, check_options
from rules_executorch.common.errors import UserError
from rules_executorch.compat import check_canonical
from rules_executorch.export.choices import SCHEMES
from rules_executorch.lower.external_data import check_external_data

if TYPE_CHECKING:
    from rules_executorch.export.options import Quantization
    from rules_executorch.export.signature import Signature
    from rules_executorch.lower.calibrate import Quantized
    from rules_executorch.lower.options import LowerOptions
    from rules_executorch.program.delegation import Delegation


def check(backend: Backend, options: LowerOptions, signature: Signature, calibration: bool) -> bool:
    """All that is known before an exported program is read.

    Args:
        backend: of the options.
        options: of the lowering.
        signature: of the export.
        calibration: whether there are inputs to calibrate with.

    Returns:
        Whether the scheme of the device is calibrated.

    Raises:
        UserError: see the other functions of this module.
    """
    check_lowering(backend, options, signature.dtype)
    check_graph(backend, signature)
    check_quantization(backend, signature.options.quantization)
    return check_calibration(backend, options, signature, calibration)


def check_lowering(backend: Backend, options: LowerOptions, dtype: str) -> None:
    """Refuses what would fail, or lower to nothing, before any time is spent on it.

    Args:
        backend: the backend.
        options: of the lowering.
        dtype: of the exported program.

    Raises:
        UserError: an option that the backend does not have, packages or an SDK that are not there,
            a dtype that it does not take, a feature that this version does not have, or packages
            with which the bytes would depend on chance.
    """
    check_options(backend, options.backend_options)
    if options.external_data:
        check_external_data(backend)
    if dtype not in backend.dtypes and not options.allow_undelegated:
        raise nothing_taken(backend, dtype)
    backend.needs.check(backend.name, options.backend_options)
    if not options.allow_noncanonical:
        check_canonical(backend.patches)


def check_graph(backend: Backend, signature: Signature) -> None:
    """Refuses a kind of program that the backend cannot hold.

    Args:
        backend: the backend.
        signature: of the export.

    Raises:
        UserError: the program generates text, or its sequence length varies, and it must not.
    """
    if not backend.generation and signature.cache is not None:
        raise UserError(
            f"The backend {backend.name} is for programs without a cache, and this one generates "
            "text.",
            instead="Export a model for classification or features, or choose another backend.",
        )
    if not backend.dynamic_shapes and signature.dynamic_dims:
        raise UserError(
            f"The backend {backend.name} takes fixed shapes only, and the sequence length of this "
            "program varies.",
            instead="Export with dynamic_seq_len = False, and max_seq_len = the number of "
            "positions of a call (1, if it is left out).",
        )


def check_quantization(backend: Backend, quantization: Quantization | None) -> None:
    """Refuses a quantization scheme whose kernels the backend does not have.

    Args:
        backend: the backend.
        quantization: of the export, as the signature holds it, or None.

    Raises:
        UserError: names the schemes that the backend takes.
    """
    if quantization is None:
        return
    for option, given, taken in (
        ("quantization", quantization.scheme, backend.schemes),
        ("quantization_embedding", quantization.embedding, backend.embedding_schemes),
    ):
        if given is not None and given not in taken:
            takes = f"Export with {option} = one of {', '.join(taken)}" if taken else ""
            raise UserError(
                f'The backend {backend.name} has no kernels for {option} = "{given}".',
                instead=f"{takes or f'Export without {option}'}, or choose another backend.",
            )
    group_size, multiple = quantization.group_size, backend.group_multiple
    scheme = SCHEMES.get(quantization.scheme or "")
    if scheme is not None and scheme.grouped and group_size % multiple:
        raise UserError(
            f"The backend {backend.name} takes groups of {multiple} weights or multiples of it, "
            f"and quantization_group_size is {group_size}.",
            instead=f"Write quantization_group_size = {multiple}, and mind that it has to divide "
            "the widths of the layers.",
        )


def check_calibration(
    backend: Backend, options: LowerOptions, signature: Signature, given: bool
) -> bool:
    """Whether the scheme of the device is calibrated.

    Args:
        backend: the backend.
        options: of the lowering.
        signature: of the export.
        given: whether there are inputs to calibrate with.

    Raises:
        UserError: they are given and not needed, or the other way round; or the program is
            quantized already, or keeps a cache whose ranges no single call shows.
    """
    scheme = options.backend_options.get("scheme", backend.default_scheme)
    calibrated = scheme in backend.calibrated_schemes
    if given and not calibrated:
        raise UserError(
            f"Calibration data are given, and nothing of this lowering for {backend.name} is "
            "calibrated.",
            instead="Leave calibration out, or choose a device whose scheme needs it.",
        )
    if scheme and signature.options.quantization is not None:
        raise UserError(
            f'The export has quantized weights, and scheme = "{scheme}" of the device would '
            "quantize them again.",
            instead="Export without quantization, or choose a device without a scheme.",
        )
    if calibrated and (signature.cache is not None or signature.dynamic_dims):
        raise UserError(
            f'scheme = "{scheme}" is calibrated, which takes a program of fixed shapes without a '
            "cache.",
            instead="Export another model or with dynamic_seq_len = False, or choose a device "
            "whose scheme is not calibrated, such as int8_dynamic of xnnpack.",
        )
    if calibrated and backend.needs_calibration and not given:
        raise UserError(
            f'scheme = "{scheme}" of {backend.name} takes its ranges from inputs, and none are '
            "given.",
            instead='Write calibration = "samples.safetensors" on the executorch_lower, or choose '
            "a scheme that needs none, such as int8_dynamic.",
        )
    return calibrated


def check_skipped(quantized: Quantized, backend: Backend, options: LowerOptions) -> None:
    """Refuses a program of which the backend's quantizer left layers, unless that is allowed.

    Raises:
        UserError: names them.
    """
    skipped = quantized.skipped
    if not skipped or options.allow_unquantized:
        return
    shown = ", ".join(f"{name} ({operator})" for name, operator in list(skipped.items())[:4])
    more = f" and {len(skipped) - 4} more" if len(skipped) > 4 else ""
    raise UserError(
        f"The quantizer of {backend.name} leaves {len(skipped)} of "
        f"{len(skipped) + len(quantized.layers)} layers as they are: {shown}{more}.",
        instead="Write allow_unquantized = True if that is what you want, or choose a device "
        "without a scheme.",
    )


_DEQUANTIZE = "torchao::dequantize_affine"


def check_delegation(
    backend: Backend, options: LowerOptions, dtype: str, delegation: Iterable[Delegation]
) -> None:
    """Refuses a program that the backend left to the portable kernels, unless that is allowed.

    Args:
        backend: the backend.
        options: of the lowering.
        dtype: of the exported program.
        delegation: what it took, of each method.

    Raises:
        UserError: it took nothing, or left quantized weights.
    """
    if options.allow_undelegated:
        return
    counts = list(delegation)
    if not any(map(backend.took, counts)):
        raise nothing_taken(backend, dtype)
    left = sum(counted.undelegated.get(_DEQUANTIZE, 0) for counted in counts)
    if left:
        raise UserError(
            f"The backend {backend.name} left {left} quantized weights to the portable kernels, "
            "which would dequantize them at every call.",
            instead="Choose another scheme or group size, or write allow_undelegated = True if "
            "that is what you want.",
        )


def nothing_taken(backend: Backend, dtype: str) -> UserError:
    """The refusal of a program of which a backend would take nothing."""
    others = [name for name in backend.dtypes if name != dtype]
    other = f'Export with dtype = "{others[0]}"' if others else "Choose another backend"
    return UserError(
        f"The backend {backend.name} takes nothing of a {dtype} program: every operator would run "
        "on the portable kernels.",
        instead=f"{other}, or write allow_undelegated = True if that is what you want.",
    )
