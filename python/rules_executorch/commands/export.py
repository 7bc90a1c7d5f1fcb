"""Export a model's graph from its config, without weights.

Writes the exported program (`.pt2`, parameters by name only) and its signature (`.json`).
"""

from __future__ import annotations

import argparse

from rules_executorch.action.environment import hermetic, seed_torch
from rules_executorch.action.progress import Progress
from rules_executorch.common import schema
from rules_executorch.common.files import whole_file
from rules_executorch.export.options import read_export_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    parser.add_argument("--options", required=True, help="JSON, see `schema export`")
    parser.add_argument("--config", required=True, help="config.json of the model")
    parser.add_argument("--out-program", required=True, help="the .pt2 to write")
    parser.add_argument("--out-signature", required=True, help="the signature to write, JSON")
    parser.add_argument("--out-timings", help="what each stage took, JSON")


def warm_up() -> None:
    """Imports what takes seconds."""
    import rules_executorch.export.generation  # noqa: F401
    import rules_executorch.export.pt2  # noqa: F401


def run(args: argparse.Namespace) -> int:
    """Exports; see `rules_executorch.export.generation`."""
    progress = Progress("export", args.target)
    progress.stage("start")
    options = read_export_options(args.options)
    with hermetic():
        seed_torch()
        from rules_executorch.checkpoint.config import load_config
        from rules_executorch.export.generation import export_model
        from rules_executorch.export.pt2 import write_program

        config = load_config(args.config)
        exported = export_model(config, options, progress)
        progress.stage("write the exported program")
        # If the signature cannot be written, the program is removed too.
        with whole_file(args.out_program) as part:
            write_program(exported.program, part)
            schema.write(args.out_signature, exported.signature)
            progress.finish(args.out_timings)
    return 0
