"""Print the JSON schema of a file that a command reads or writes.

rules_executorch schema export > export.schema.json
"""

from __future__ import annotations

import argparse
import importlib
import json

from rules_executorch.common.schema import Artifact, json_schema

KINDS = {
    "export": ("export.options", "ExportOptions"),
    "huggingface-lock": ("hub.lockfile", "Lock"),
    "lower": ("lower.options", "LowerOptions"),
    "manifest": ("records.manifest", "Manifest"),
    "model": ("checkpoint.description", "ModelDescription"),
    "signature": ("export.signature", "Signature"),
    "timings": ("action.progress", "Timings"),
}
"""Name of a file's form, to the module and the type that define it."""


def find_kind(name: str) -> type[Artifact]:
    """The type of a key of `KINDS`."""
    module, kind = KINDS[name]
    found: type[Artifact] = getattr(importlib.import_module(f"rules_executorch.{module}"), kind)
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    parser.add_argument("kind", choices=sorted(KINDS), help="which file's")


def run(args: argparse.Namespace) -> int:
    """Prints it."""
    print(json.dumps(json_schema(find_kind(args.kind)), indent=2))
    return 0
