"""Check the archive of an executorch_release: digests, manifests, programs.

    bazel run @rules_executorch//tools:verify -- release.tar [--sha256 DIGEST]

Without --sha256 this shows that nothing was damaged or added. Whoever replaces the archive can
replace everything in it; only a digest or a signature from another place rules that out.
"""

from __future__ import annotations

import argparse
import os

from rules_executorch.action.environment import hermetic
from rules_executorch.action.paths import given_file
from rules_executorch.action.quiet import quiet_libraries


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    parser.add_argument("archive", help="the .tar")
    parser.add_argument("--sha256", help="digest that the archive must have")


def run(args: argparse.Namespace) -> int:
    """Prints what was found; see `rules_executorch.records.verify`."""
    quiet_libraries()
    path = given_file(args.archive)
    with hermetic() as scratch:
        from rules_executorch.program.compare.files import sha256
        from rules_executorch.records.verify import verify_release

        folder = os.path.join(scratch, "release")
        os.mkdir(folder)
        digest = sha256(path)
        faults = verify_release(path, folder)
    if args.sha256 and digest != args.sha256.lower():
        faults.insert(0, f"The archive has the sha256 {digest}, not {args.sha256}.")
    for fault in faults:
        print(fault)
    if not faults:
        print(f"{args.archive} is sound: every file, program and manifest fits. sha256 {digest}")
    return 1 if faults else 0
