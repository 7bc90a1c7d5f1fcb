"""Show what is in a program: methods, constants, delegates, operators and sizes."""

from __future__ import annotations

import argparse
import json

from rules_executorch.environment import hermetic


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    parser.add_argument("program", help="the .pte")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Prints the program; see `rules_executorch.inspect`."""
    with hermetic():
        from rules_executorch.inspect import inspect_program, render

        info = inspect_program(args.program)
    print(json.dumps(info.to_json(), indent=2) if args.json else render(info))
    return 0
