"""List the operators that programs need, merged, for a selective build of the runtime."""

from __future__ import annotations

import argparse
import os

from rules_executorch.common.files import whole_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    parser.add_argument("--programs", required=True, nargs="+", help="the .pte files")
    parser.add_argument("--out-operators", required=True, help="selected_operators.yaml to write")


def run(args: argparse.Namespace) -> int:
    """Writes the merged operators; see `rules_executorch.program.operator_selection`."""
    from rules_executorch.program.operator_selection import render, select_operators

    selected = select_operators([(os.path.basename(path), path) for path in args.programs])
    with whole_file(args.out_operators) as part, open(part, "w", encoding="utf-8") as file:
        file.write(render(selected))
    return 0
