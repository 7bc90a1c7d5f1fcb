"""Build targets twice in different conditions, and say what differs.

    bazel run @rules_executorch//tools:reproduce -- //models:assistant

Takes two full builds: fresh output bases, caches of outputs off.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import tempfile
from pathlib import Path

from rules_executorch.action.quiet import quiet_libraries
from rules_executorch.common import guard
from rules_executorch.common.errors import UserError

KEEPS_TMPDIR = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    parser.add_argument("targets", nargs="+", metavar="TARGET", help="what to build")
    parser.add_argument(
        "--bazel-flag",
        action="append",
        default=[],
        metavar="FLAG",
        help="of both builds (repeated): --bazel-flag=--config=release",
    )
    parser.add_argument(
        "--keep", action="store_true", help="leave the output bases, and say where they are"
    )


def run(args: argparse.Namespace) -> int:
    """Prints digests and differences; see `rules_executorch.records.reproduce`."""
    quiet_libraries()
    from rules_executorch.records.reproduce import (
        CONDITIONS,
        Builds,
        differences,
        outputs,
        programs,
    )

    workspace = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if not workspace:
        raise UserError(
            "This runs in a workspace.",
            instead="Start it by `bazel run @rules_executorch//tools:reproduce -- TARGET`.",
        )
    # Bazel shuts down and the folders are removed also when this is interrupted.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with contextlib.ExitStack() as stack:
        if args.keep:
            scratch = Path(tempfile.mkdtemp(prefix="reproduce-"))
            print(f"The output bases are in {scratch}.", flush=True)
        else:
            scratch = Path(stack.enter_context(guard.temporary_folder("reproduce-")))
        builds = Builds(Path(workspace), scratch, os.environ)
        built = []
        for number, condition in enumerate(CONDITIONS, start=1):
            print(f"Build {number} of {len(CONDITIONS)}: {', '.join(args.targets)}", flush=True)
            built.append(builds.build(condition, args.targets, args.bazel_flag))
        for path, digest in programs(built[0]):
            print(f"{digest}  {path}")
        found = list(differences(*built))
        for path, clauses in found:
            print(f"\n{path} differs:")
            for clause in clauses:
                print(f"  {clause}")
        count = len(outputs(built[0]))
    if found:
        print(f"\n{len(found)} of {count} files are not reproducible.")
        return 1
    print(f"All {count} files have the same bytes in both builds.")
    return 0
