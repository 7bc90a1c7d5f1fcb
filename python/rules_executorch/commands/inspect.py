"""Show what is in a program (methods, delegates, operators, sizes) or in its data file."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os

from rules_executorch.action.environment import hermetic
from rules_executorch.common.schema import to_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    parser.add_argument("program", help="the .pte, or a .ptd")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Prints the file; see `rules_executorch.program.inspect` and `program.ptd`."""
    with hermetic():
        if os.path.isfile(args.program):
            from rules_executorch.program import ptd

            if ptd.is_data(args.program):
                tensors = ptd.inspect_data(args.program)
                value = {"tensors": [dataclasses.asdict(tensor) for tensor in tensors]}
                text = ptd.render(tensors)
                print(json.dumps(value, indent=2) if args.json else text)
                return 0
        from rules_executorch.program.inspect import inspect_program, render

        info = inspect_program(args.program)
    print(json.dumps(to_json(info), indent=2) if args.json else render(info))
    return 0
