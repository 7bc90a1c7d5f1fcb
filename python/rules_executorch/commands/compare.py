"""Say where two programs differ: operator, delegate, constant. Also other files of a build.

Exits with 0 for the same bytes and with 1 for others.
"""

from __future__ import annotations

import argparse

from rules_executorch.action.environment import hermetic
from rules_executorch.action.paths import given_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    parser.add_argument("first", help="a .pte, .pt2, .json or another file")
    parser.add_argument("second", help="the same of another build")


def run(args: argparse.Namespace) -> int:
    """Prints the differences; see `rules_executorch.program.compare`."""
    paths = [given_file(path) for path in (args.first, args.second)]
    with hermetic():
        from rules_executorch.program.compare.files import compare_files

        found = compare_files(*paths)
    for line in found or ["The files have the same bytes."]:
        print(line)
    return 1 if found else 0
