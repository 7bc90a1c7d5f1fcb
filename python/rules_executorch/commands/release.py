"""Pack files into the archive of a release."""

from __future__ import annotations

import argparse

from rules_executorch.action.environment import hermetic
from rules_executorch.common.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    parser.add_argument("--name", required=True, help="of the release")
    parser.add_argument(
        "--add",
        nargs=2,
        action="append",
        default=[],
        metavar=("MEMBER", "FILE"),
        help="a file, and its name below the folder of the release",
    )
    parser.add_argument("--out", required=True, help="the archive to write, .tar")


def run(args: argparse.Namespace) -> int:
    """Writes it; see `rules_executorch.records.archive`."""
    with hermetic():
        from rules_executorch.records.archive import write_release

        members: dict[str, str] = {}
        for member, path in args.add:
            if member in members:
                raise UserError(
                    f"Two files of the release would be {member}: {members[member]} and {path}.",
                    instead="Leave one of them out.",
                )
            members[member] = path
        write_release(args.out, args.name, members)
    return 0
