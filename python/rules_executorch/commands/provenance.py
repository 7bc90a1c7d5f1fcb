"""Write how a program was made, as an in-toto statement with SLSA provenance."""

from __future__ import annotations

import argparse

from rules_executorch.action.environment import hermetic
from rules_executorch.commands import sbom
from rules_executorch.common.files import write_json
from rules_executorch.records.manifest import file_entry, read_manifest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    sbom.add_inputs(parser)
    parser.add_argument("--lowered", required=True, help="label of the executorch_lower")
    parser.add_argument("--builder", required=True, help="URI of who builds")
    parser.add_argument("--data", nargs="*", default=[], help="further outputs of the lowering")
    parser.add_argument("--out", required=True, help="the statement to write, JSON")


def run(args: argparse.Namespace) -> int:
    """Writes it; see `rules_executorch.records.provenance`."""
    manifest = read_manifest(args.manifest)
    with hermetic():
        from rules_executorch.checkpoint.license import read_source
        from rules_executorch.records.installed_packages import compile_packages
        from rules_executorch.records.provenance import make_provenance

        url = read_source(args.source).package_url if args.source else args.package_url
        packages = compile_packages(args.marker, manifest.versions)
        data = [file_entry(path, f"{args.name}.ptd") for path in args.data]
        statement = make_provenance(
            args.name, args.lowered, args.builder, manifest, url, packages, data
        )
        write_json(args.out, statement)
    return 0
