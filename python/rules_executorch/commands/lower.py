"""Lower an exported program for a backend, with the weights of a checkpoint.

Writes the program (`.pte`), its manifest (`.json`) and a report for people (`.md`).
"""

from __future__ import annotations

import argparse
import contextlib

from rules_executorch.action.environment import hermetic, seed_torch
from rules_executorch.action.progress import Progress
from rules_executorch.action.quiet import quiet_libraries
from rules_executorch.checkpoint.description import read as read_description
from rules_executorch.common import schema
from rules_executorch.common.files import whole_file
from rules_executorch.export.signature import read_signature
from rules_executorch.lower.options import read_lower_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    parser.add_argument("--options", required=True, help="JSON, see `schema lower`")
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
    """Imports what takes seconds, and compares the sources of the patches, which may take one."""
    quiet_libraries()
    import rules_executorch.lower.pipeline  # noqa: F401
    from rules_executorch import compat

    for patch in compat.PATCHES:
        patch.unsuitable()


def run(args: argparse.Namespace) -> int:
    """Lowers; see `rules_executorch.lower.pipeline`."""
    quiet_libraries()
    progress = Progress("lower", args.target)
    progress.stage("start")
    options = read_lower_options(args.options)
    signature = read_signature(args.signature)
    description = read_description(args.model_description)
    with hermetic():
        seed_torch()
        from rules_executorch.checkpoint.config import load_config
        from rules_executorch.checkpoint.weights import open_model_weights
        from rules_executorch.lower import pipeline
        from rules_executorch.lower.constant_methods import constant_methods
        from rules_executorch.records.describe import Inputs, make_manifest
        from rules_executorch.records.report import render_report

        # A later output that fails takes the earlier ones with it.
        with contextlib.ExitStack() as stack:
            part = stack.enter_context(whole_file(args.out_program))
            data = stack.enter_context(whole_file(args.out_data)) if args.out_data else None
            written = pipeline.lower(
                args.exported,
                signature,
                open_model_weights(args.weights, load_config(args.config), signature.options.task),
                options,
                constant_methods(signature, description),
                out_program=part,
                out_data=data,
                calibration=args.calibration,
                progress=progress,
            )
            inputs = Inputs(args.config, args.exported, sorted(args.weights), part, data)
            manifest = make_manifest(
                inputs, signature, description, options, written.lowered, written.info
            )
            report = stack.enter_context(whole_file(args.out_report))
            with open(report, "w", encoding="utf-8") as file:
                file.write(render_report(manifest))
            schema.write(args.out_manifest, manifest)
            progress.finish(args.out_timings)
    return 0
