"""Check a program against limits, by its manifest alone."""

from __future__ import annotations

import argparse

from rules_executorch.common.errors import UserError
from rules_executorch.common.files import whole_file
from rules_executorch.records.budget import Budget, check_budget, render
from rules_executorch.records.manifest import read_manifest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    parser.add_argument("--manifest", required=True, help="manifest of the program, JSON")
    parser.add_argument("--device", help="label of the device, for messages")
    parser.add_argument("--out", help="file to write the table to instead of printing it")
    parser.add_argument("--max-program-bytes", type=int, help="size of the .pte")
    parser.add_argument("--max-planned-bytes", type=int, help="memory that a method plans")
    parser.add_argument("--min-delegated-share", type=float, help="0 to 1, of each method")
    parser.add_argument(
        "--allowed-operators",
        nargs="*",
        metavar="OPERATOR",
        help="operators that may be called, for example aten::add.out; * stands for anything",
    )
    parser.add_argument(
        "--runtime-operators",
        action="append",
        metavar="FILE",
        help="selected_operators.yaml of the app's runtime: its operators may be called as well",
    )


def run(args: argparse.Namespace) -> int:
    """Checks, gives a table, and fails with sentences; see `rules_executorch.records.budget`."""
    manifest = read_manifest(args.manifest)
    allowed = args.allowed_operators
    if args.runtime_operators:
        from rules_executorch.program.operator_selection import read_operator_names

        allowed = [*(allowed or ()), *map(str, read_operator_names(args.runtime_operators))]
    checks = check_budget(
        manifest,
        Budget(
            args.max_program_bytes,
            args.max_planned_bytes,
            args.min_delegated_share,
            allowed,
            args.device,
        ),
    )
    table = render(checks)
    problems = [check.problem for check in checks if check.problem is not None]
    if args.out is None:
        print(table)
    if problems:
        raise UserError("\n".join(problems))
    if args.out is not None:
        with whole_file(args.out) as part, open(part, "w", encoding="utf-8") as file:
            file.write(table + "\n")
    return 0
