"""Write a program as a constant array in C."""

from __future__ import annotations

import argparse
import contextlib
import os

from rules_executorch.common.errors import UserError
from rules_executorch.common.files import whole_file
from rules_executorch.program import embed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    parser.add_argument("--program", required=True, help="the .pte")
    parser.add_argument("--symbol", required=True, help="name of the array")
    parser.add_argument("--alignment", type=int, default=embed.MIN_ALIGNMENT, help="bytes")
    parser.add_argument("--section", help="section of the object file")
    parser.add_argument("--out-header", required=True, help="the .h to write")
    parser.add_argument("--out-source", required=True, help="the .c to write")


def run(args: argparse.Namespace) -> int:
    """Writes header and source; see `rules_executorch.program.embed`."""
    embed.check_symbol(args.symbol)
    embed.check_alignment(args.alignment)
    if args.section and not args.section.replace(".", "").replace("_", "").isalnum():
        raise UserError(
            f'section = "{args.section}" is not the name of a section.',
            instead='Write letters, digits, dots and underscores, for example section = ".rodata".',
        )
    size = os.path.getsize(args.program)
    embed.check_size(size)
    with contextlib.ExitStack() as stack:
        header = stack.enter_context(whole_file(args.out_header))
        with open(header, "w", encoding="ascii") as file:
            name = os.path.basename(args.program)
            embed.write_header(file, args.symbol, size, args.alignment, name)
        source = stack.enter_context(whole_file(args.out_source))
        with open(source, "w", encoding="ascii") as file:
            embed.write_source(file, args.program, args.symbol, args.alignment, args.section)
    return 0
