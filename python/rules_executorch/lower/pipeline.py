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
from rules_executorch.backends import find_backend
from rules_executorch.common.errors import UserError
from rules_executorch.export.build import PREFIX
from rules_executorch.export.pt2 import read_program
from rules_executorch.lower import checks
from rules_executorch.lower.bind import bind_weights
from rules_executorch.lower.calibrate import (
    Calibration,
    quantize_program,
    random_calibration,
    read_calibration,
)
from rules_executorch.lower.calibration_source import CalibrationSource
from rules_executorch.lower.delegate_progress import watched_delegates
from rules_executorch.lower.external_data import (
    move_delegates_data,
    weights_only,
    write_data,
)
from rules_executorch.program.delegation import Delegation, copies, count_delegation
from rules_executorch.program.info import ProgramInfo
from rules_executorch.program.inspect import inspect_program
from rules_executorch.program.operator_libraries import load_llm_operators

if TYPE_CHECKING:
    from executorch.exir import ExecutorchProgramManager
    from torch.export import ExportedProgram

    from rules_executorch.checkpoint.stored_weights import Weights
    from rules_executorch.export.signature import Signature
    from rules_executorch.lower.options import LowerOptions


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
    calibration: CalibrationSource | None = None
    layers: tuple[dict[str, str], dict[str, str]] | None = None


@dataclasses.dataclass(frozen=True)
class Written:
    """A program that was lowered and written.

    Attributes:
        lowered: how it became what it is.
        info: the program as it was read back from its file.
    """

    lowered: Lowered
    info: ProgramInfo


def lower(
    exported: str,
    signature: Signature,
    weights: Weights,
    options: LowerOptions,
    constants: Mapping[str, Any],
    *,
    out_program: str,
    out_data: str | None = None,
    calibration: Calibration | str | None = None,
    progress: Progress | None = None,
) -> Written:
    """Reads an exported program, binds the weights, lowers, writes, and reads back what it wrote.

    Args:
        exported: path of the `.pt2`.
        signature: what the export wrote beside it.
        weights: the checkpoint's, by the names of the model; closed at the end.
        options: of the lowering.
        constants: constant methods by name.
        out_program: the `.pte` to write.
        out_data: the `.ptd` to write, with `external_data` and only with it.
        calibration: inputs for the backend's quantizer, or the safetensors file with them.
        progress: is told of the stages.

    Raises:
        UserError: see `checks`, `read_program`, `bind_weights` and `lower_program`.
    """
    progress = progress or Progress()
    if options.external_data != (out_data is not None):
        raise UserError(
            f"The options say external_data = {options.external_data}, and a path for the data is "
            f"{'not ' if out_data is None else ''}given.",
            instead="Give --out-data with external_data, and only with it.",
        )
    checks.check(find_backend(options.backend), options, signature, calibration is not None)
    if isinstance(calibration, str):
        calibration = read_calibration(calibration, signature)
    if signature.options.custom_ops:
        load_llm_operators()
    progress.stage("read the exported program")
    program = read_program(exported)
    with weights:
        progress.stage("bind the weights")
        bind_weights(program, signature, weights)
        lowered = lower_program(program, signature, options, constants, calibration, progress)
        progress.stage("write the program")
        with open(out_program, "wb") as file:
            lowered.manager.write_to_file(file)
        if out_data is not None:
            write_data(lowered.manager, out_data)
    progress.stage("describe the program")
    return Written(lowered, inspect_program(out_program))


def lower_program(
    program: ExportedProgram,
    signature: Signature,
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
    calibrated = checks.check(backend, options, signature, calibration is not None)
    # Passes refuse the call of the guards that unlifting would put into the graph.
    program._guards_code = []
    progress.stage(_PARTITION)
    with (
        torch.no_grad(),
        compat.patched_lowering(backend.patches, options.allow_noncanonical) as patches,
        watched_delegates(progress, _PARTITION),
    ):
        chosen = options.backend_options
        weights_outside = weights_only(program, signature) if options.external_data else False
        for rewrite in backend.before:
            rewrite(program)
        quantizer = backend.quantizer(chosen) if backend.quantizer is not None else None
        quantized = None
        if quantizer is not None:
            inputs = calibration or random_calibration(signature)
            calibration = inputs if calibrated else None
            samples = inputs.samples if calibrated else inputs.samples[:1]
            dims = signature.dynamic_dims
            quantized = quantize_program(program, quantizer, samples, dims, progress)
            checks.check_skipped(quantized, backend, options)
            program = quantized.program
            progress.stage(_PARTITION)
        integers = quantized is not None or signature.options.quantization is not None
        edge_passes = backend.edge_passes(chosen)
        edge = to_edge_transform_and_lower(
            {"forward": program},
            transform_passes={"forward": edge_passes} if edge_passes else None,
            partitioner={"forward": backend.partitioners_for(chosen, integers)},
            constant_methods=dict(constants),
            compile_config=backend.compile_config(),
        )
        for finish in backend.after:
            finish(edge, chosen)
        delegation = {name: count_delegation(edge.exported_program(name)) for name in edge.methods}
        checks.check_delegation(backend, options, signature.dtype, delegation.values())
        tied_copies = {
            name: copies(edge.exported_program("forward"), PREFIX + name)
            for name in sorted(set(signature.ties.values()))
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
