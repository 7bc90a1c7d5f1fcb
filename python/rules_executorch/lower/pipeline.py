"""An exported program with its weights becomes a program for a backend.

Rests on `executorch.exir.to_edge_transform_and_lower` and `EdgeProgramManager.to_executorch`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from executorch.exir import ExecutorchBackendConfig, to_edge_transform_and_lower
from executorch.exir.passes import MemoryPlanningPass

from rules_executorch import compat
from rules_executorch.action.progress import Progress
from rules_executorch.backends import Backend, check_options, find_backend
from rules_executorch.common.errors import UserError
from rules_executorch.export.build import PREFIX
from rules_executorch.export.quantize import SCHEMES
from rules_executorch.lower.calibrate import (
    Calibration,
    Quantized,
    quantize_program,
    random_calibration,
)
from rules_executorch.lower.delegate_progress import watched_delegates
from rules_executorch.lower.external_data import (
    check_external_data,
    move_delegates_data,
    weights_only,
)
from rules_executorch.lower.passes.overwritten_buffers import drop_dead_state
from rules_executorch.lower.passes.quantized_embedding import fuse_embeddings
from rules_executorch.lower.passes.tanh_gelu import spell_out_tanh_gelu
from rules_executorch.program.delegation import Delegation, copies, count_delegation

if TYPE_CHECKING:
    from executorch.exir import ExecutorchProgramManager
    from torch.export import ExportedProgram

    from rules_executorch.export.options import LowerOptions


_DEQUANTIZE = "torchao::dequantize_affine"
_PARTITION = "partition the graph"


@dataclasses.dataclass(frozen=True)
class Lowered:
    """A program that is ready to be written.

    Attributes:
        manager: holds the program and its data.
        delegation: what the backend took, by method.
        tied_copies: name of each parameter that is tied, to the places that store it.
        patches: which patches of torch and exir were in force.
        calibration: what the backend's quantizer was calibrated with, or None if there is none.
        layers: the layers that the backend's quantizer quantized and those that it skipped, with
            the operator of each; None if there is no quantizer.
    """

    manager: ExecutorchProgramManager
    delegation: dict[str, Delegation]
    tied_copies: dict[str, list[str]]
    patches: compat.Report
    calibration: dict[str, Any] | None = None
    layers: tuple[dict[str, str], dict[str, str]] | None = None


def check_lowering(backend: Backend, options: LowerOptions, dtype: str) -> None:
    """Refuses what would fail, or lower to nothing, before any time is spent on it.

    Args:
        backend: the backend.
        options: of the lowering.
        dtype: of the exported program.

    Raises:
        UserError: an option that the backend does not have, packages or an SDK that are not there,
            a dtype that it does not take, or a feature that this version does not have.
    """
    check_options(backend, options.backend_options)
    if options.external_data:
        check_external_data(backend)
    if dtype not in backend.dtypes and not options.allow_undelegated:
        raise _nothing_taken(backend, dtype)
    backend.needs.check(backend.name, options.backend_options)


def check_graph(backend: Backend, signature: Mapping[str, Any]) -> None:
    """Refuses a kind of program that the backend cannot hold.

    Args:
        backend: the backend.
        signature: of the export.

    Raises:
        UserError: the program generates text, or its sequence length varies, and it must not.
    """
    if not backend.generation and signature["cache"] is not None:
        raise UserError(
            f"The backend {backend.name} is for programs without a cache, and this one generates "
            "text.",
            instead="Export a model for classification or features, or choose another backend.",
        )
    if not backend.dynamic_shapes and signature["dynamic_dims"]:
        raise UserError(
            f"The backend {backend.name} takes fixed shapes only, and the sequence length of this "
            "program varies.",
            instead="Export with dynamic_seq_len = False, and max_seq_len = the number of "
            "positions of a call (1, if it is left out).",
        )


def check_quantization(backend: Backend, quantization: Mapping[str, Any] | None) -> None:
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
        ("quantization", quantization["scheme"], backend.schemes),
        ("quantization_embedding", quantization["embedding"], backend.embedding_schemes),
    ):
        if given is not None and given not in taken:
            takes = f"Export with {option} = one of {', '.join(taken)}" if taken else ""
            raise UserError(
                f'The backend {backend.name} has no kernels for {option} = "{given}".',
                instead=f"{takes or f'Export without {option}'}, or choose another backend.",
            )
    group_size, multiple = quantization["group_size"], backend.group_multiple
    scheme = SCHEMES.get(quantization["scheme"])
    if scheme is not None and scheme.grouped and group_size % multiple:
        raise UserError(
            f"The backend {backend.name} takes groups of {multiple} weights or multiples of it, "
            f"and quantization_group_size is {group_size}.",
            instead=f"Write quantization_group_size = {multiple}, and mind that it has to divide "
            "the widths of the layers.",
        )


def check_calibration(
    backend: Backend, options: LowerOptions, signature: Mapping[str, Any], given: bool
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
    if scheme and signature["options"]["quantization"] is not None:
        raise UserError(
            f'The export has quantized weights, and scheme = "{scheme}" of the device would '
            "quantize them again.",
            instead="Export without quantization, or choose a device without a scheme.",
        )
    if calibrated and (signature["cache"] is not None or signature["dynamic_dims"]):
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


def lower_program(
    program: ExportedProgram,
    signature: Mapping[str, Any],
    options: LowerOptions,
    constants: Mapping[str, Any],
    calibration: Calibration | None = None,
    progress: Progress | None = None,
) -> Lowered:
    """Lowers a program with its weights bound.

    Args:
        program: consumed: its guards are removed.
        signature: of the export.
        options: of the lowering.
        constants: constant methods by name.
        calibration: inputs for the backend's quantizer, if the options ask for one; seeded random
            ones without.
        progress: is told of the stages.

    Raises:
        UserError: see `check_lowering`; or the backend took nothing of the graph, or calibration
            is given where nothing is calibrated.
    """
    progress = progress or Progress()
    backend = find_backend(options.backend)
    dtype = signature["dtype"]
    check_lowering(backend, options, dtype)
    check_graph(backend, signature)
    quantization = signature["options"]["quantization"]
    check_quantization(backend, quantization)
    calibrated = check_calibration(backend, options, signature, calibration is not None)
    partitioners = backend.partitioners
    if quantization is not None and backend.quantized_partitioners is not None:
        partitioners = backend.quantized_partitioners
    # Passes refuse the call of the guards that unlifting would put into the graph.
    program._guards_code = []
    progress.stage(_PARTITION)
    with (
        torch.no_grad(),
        compat.fast_lowering(backend.patches) as patches,
        watched_delegates(progress, _PARTITION),
    ):
        chosen = options.backend_options
        weights_outside = weights_only(program, signature) if options.external_data else False
        if backend.drops_dead_state:
            drop_dead_state(program)
        if not backend.computes_tanh_gelu:
            spell_out_tanh_gelu(program)
        quantizer = backend.quantizer(chosen) if backend.quantizer is not None else None
        quantized = None
        if quantizer is not None:
            inputs = calibration or random_calibration(signature)
            if calibrated:
                calibration = inputs
            samples = inputs.samples if calibrated else inputs.samples[:1]
            quantized = quantize_program(
                program, quantizer, samples, signature["dynamic_dims"], progress
            )
            check_skipped(quantized, backend, options)
            program = quantized.program
            partitioners = backend.quantized_partitioners or partitioners
            progress.stage(_PARTITION)
        edge = to_edge_transform_and_lower(
            {"forward": program},
            transform_passes={"forward": backend.passes(chosen)} if backend.passes else None,
            partitioner={"forward": partitioners(chosen)},
            constant_methods=dict(constants),
            compile_config=backend.compile_config(),
        )
        if quantization is not None and quantization["embedding"] is not None:
            fuse_embeddings(edge)
        if backend.finish is not None:
            edge = backend.finish(edge, chosen)
        delegation = {name: count_delegation(edge.exported_program(name)) for name in edge.methods}
        taken = any(map(backend.took, delegation.values()))
        if not taken and not options.allow_undelegated:
            raise _nothing_taken(backend, dtype)
        left = sum(counted.undelegated.get(_DEQUANTIZE, 0) for counted in delegation.values())
        if left and not options.allow_undelegated:
            raise UserError(
                f"The backend {backend.name} left {left} quantized weights to the portable "
                "kernels, which would dequantize them at every call.",
                instead="Choose another scheme or group size, or write allow_undelegated = True if "
                "that is what you want.",
            )
        tied_copies = {
            name: copies(edge.exported_program("forward"), PREFIX + name)
            for name in sorted(set(signature["ties"].values()))
        }
        if options.external_data:
            move_delegates_data(edge)
        progress.stage("plan the memory")
        manager = edge.to_executorch(
            ExecutorchBackendConfig(
                extract_delegate_segments=True,
                external_constants=weights_outside,
                # The caller of a method owns its inputs, so none is planned into the arena.
                memory_planning_pass=MemoryPlanningPass(alloc_graph_input=False),
            )
        )
    source = calibration.source if calibration is not None else None
    layers = (quantized.layers, quantized.skipped) if quantized is not None else None
    return Lowered(manager, delegation, tied_copies, patches, source, layers)


def _nothing_taken(backend: Backend, dtype: str) -> UserError:
    others = [name for name in backend.dtypes if name != dtype]
    other = f'Export with dtype = "{others[0]}"' if others else "Choose another backend"
    return UserError(
        f"The backend {backend.name} takes nothing of a {dtype} program: every operator would run "
        "on the portable kernels.",
        instead=f"{other}, or write allow_undelegated = True if that is what you want.",
    )
