"""Lower an exported program for a backend, with the weights of a checkpoint.

Writes the program (`.pte`), its manifest (`.json`) and a report for people (`.md`).
"""

from __future__ import annotations

import argparse
import contextlib

from rules_executorch.action.environment import hermetic, seed_torch
from rules_executorch.action.progress import Progress
from rules_executorch.action.quiet import quiet_libraries
from rules_executorch.common.errors import UserError
from rules_executorch.common.files import read_json, whole_file, write_json
from rules_executorch.export.options import read_lower_options
from rules_executorch.program.operator_libraries import load_llm_operators


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    parser.add_argument("--options", required=True, help="JSON, see schema/lower.schema.json")
    parser.add_argument("--exported", required=True, help="the .pt2 of executorch_export")
    parser.add_argument("--signature", required=True, help="its signature, JSON")
    parser.add_argument("--model-description", required=True, help="model.json of the model")
    parser.add_argument("--config", required=True, help="config.json of the model")
    parser.add_argument("--weights", required=True, nargs="+", help="files of the weights")
    parser.add_argument(
        "--calibration", help="inputs for a scheme that is calibrated, safetensors; random without"
    )
    parser.add_argument("--out-program", required=True, help="the .pte to write")
    parser.add_argument("--out-manifest", required=True, help="the manifest to write, JSON")
    parser.add_argument("--out-report", required=True, help="the report to write, Markdown")
    parser.add_argument("--out-timings", help="what each stage took, JSON")
    parser.add_argument("--out-data", help="the .ptd to write, if the options ask for one")


def warm_up() -> None:
    """Imports what takes seconds."""
    quiet_libraries()
    import rules_executorch.export.pt2  # noqa: F401
    import rules_executorch.lower.pipeline  # noqa: F401


def run(args: argparse.Namespace) -> int:
    """Lowers; see `rules_executorch.lower.pipeline`."""
    quiet_libraries()
    progress = Progress("lower", args.target)
    progress.stage("start")
    options = read_lower_options(args.options)
    if options.external_data != (args.out_data is not None):
        raise UserError(
            f"The options say external_data = {options.external_data}, and --out-data is "
            f"{'not ' if args.out_data is None else ''}given.",
            instead="Give --out-data with external_data, and only with it.",
        )
    signature = read_json(args.signature, "The signature of the exported program")
    description = read_json(args.model_description, "The description of the model")
    with hermetic():
        seed_torch()
        from rules_executorch.backends import find_backend
        from rules_executorch.checkpoint.weights import open_weights
        from rules_executorch.export.pt2 import bind_weights, read_program
        from rules_executorch.lower.calibrate import read_calibration
        from rules_executorch.lower.external_data import write_data
        from rules_executorch.lower.pipeline import (
            check_calibration,
            check_graph,
            check_lowering,
            check_quantization,
            lower_program,
        )
        from rules_executorch.program.inspect import inspect_program
        from rules_executorch.program.runner_contract import constant_methods
        from rules_executorch.records.manifest import Inputs, make_manifest, render_report

        backend = find_backend(options.backend)
        check_lowering(backend, options, signature["dtype"])
        check_graph(backend, signature)
        check_quantization(backend, signature["options"]["quantization"])
        check_calibration(backend, options, signature, args.calibration is not None)
        calibration = None
        if args.calibration is not None:
            calibration = read_calibration(args.calibration, signature)
        if signature["options"]["custom_ops"]:
            load_llm_operators()
        progress.stage("read the exported program")
        program = read_program(args.exported)
        with contextlib.ExitStack() as stack:
            progress.stage("bind the weights")
            bind_weights(program, signature, stack.enter_context(open_weights(args.weights)))
            constants = constant_methods(signature, description)
            lowered = lower_program(program, signature, options, constants, calibration, progress)
            # A later output that fails takes the earlier ones with it.
            progress.stage("write the program")
            part = stack.enter_context(whole_file(args.out_program))
            with open(part, "wb") as file:
                lowered.manager.write_to_file(file)
            data = None
            if options.external_data:
                data = stack.enter_context(whole_file(args.out_data))
                write_data(lowered.manager, data)
            progress.stage("describe the program")
            inputs = Inputs(args.config, args.exported, sorted(args.weights), part, data)
            info = inspect_program(part)
            manifest = make_manifest(inputs, signature, description, options, lowered, info)
            report = stack.enter_context(whole_file(args.out_report))
            with open(report, "w", encoding="utf-8") as file:
                file.write(render_report(manifest))
            write_json(args.out_manifest, manifest)
            progress.finish(args.out_timings)
    return 0
