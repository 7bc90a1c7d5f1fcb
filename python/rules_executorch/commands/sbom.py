"""Write the CycloneDX ML-BOM of a program."""

from __future__ import annotations

import argparse

from rules_executorch.action.environment import hermetic
from rules_executorch.common.files import write_json
from rules_executorch.records.manifest import read_manifest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    add_inputs(parser)
    parser.add_argument("--model-name", required=True, help="of the hf_model")
    parser.add_argument("--license", help="what the hf_model declares")
    parser.add_argument("--readme", help="the model card")
    parser.add_argument("--gguf", help="the weights, where they are GGUF")
    parser.add_argument("--out", required=True, help="the SBOM to write, JSON")


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that `sbom` and `provenance` share."""
    parser.add_argument("--name", required=True, help="of the program, without extension")
    parser.add_argument("--manifest", required=True, help="of the program, JSON")
    parser.add_argument("--marker", required=True, help="of the toolchain that compiled it")
    parser.add_argument("--source", help="huggingface.json of the model")
    parser.add_argument("--package-url", help="of a model that is not from the hub")


def run(args: argparse.Namespace) -> int:
    """Writes it; see `rules_executorch.records.sbom`."""
    manifest = read_manifest(args.manifest)
    with hermetic():
        from rules_executorch.checkpoint.license import card_of, read_source
        from rules_executorch.records.installed_packages import compile_packages
        from rules_executorch.records.sbom import Origin, make_sbom

        origin = Origin(
            name=args.model_name,
            source=read_source(args.source) if args.source else None,
            package_url=args.package_url,
            card=card_of(args.readme, args.gguf),
            license=args.license,
        )
        packages = compile_packages(args.marker, manifest.versions)
        write_json(args.out, make_sbom(args.name, manifest, origin, packages))
    return 0
