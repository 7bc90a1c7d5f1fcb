"""How a program was made, as an in-toto statement with SLSA provenance.

Forms: https://in-toto.io/Statement/v1 and https://slsa.dev/provenance/v1. It is not
signed here; a release signs it. It has no time, so the same inputs give the same statement.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rules_executorch.records.installed_packages import Package
    from rules_executorch.records.manifest import FileEntry, Manifest

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "pkg:bazel/rules_executorch#executorch_lower"


def make_provenance(
    name: str,
    target: str,
    builder: str,
    manifest: Manifest,
    model_url: str | None,
    packages: Sequence[Package],
    data: Sequence[FileEntry] = (),
) -> dict[str, Any]:
    """The statement of one program.

    Args:
        name: of the program, without extension.
        target: label of the executorch_lower.
        builder: URI of who builds, `//executorch/settings:builder_id`.
        manifest: of the program.
        model_url: package URL of the model, or None.
        packages: that compiled the program.
        data: further outputs.
    """
    program, inputs = manifest.program, manifest.inputs
    weights = [_resource(entry, model_url) for entry in inputs.weights]
    others = [_resource(entry, None) for entry in (inputs.config, inputs.exported)]
    return {
        "_type": STATEMENT,
        "subject": [
            {"name": f"{name}.pte", "digest": {"sha256": program.sha256}},
            *({"name": entry.name, "digest": {"sha256": entry.sha256}} for entry in data),
        ],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {
                    "target": target,
                    "export": dataclasses.asdict(manifest.export.options),
                    "lower": dataclasses.asdict(manifest.lower.options),
                },
                "internalParameters": {"patches": dataclasses.asdict(manifest.lower.patches)},
                "resolvedDependencies": [*weights, *others, *map(_package, packages)],
            },
            "runDetails": {"builder": {"id": builder, "version": dict(manifest.versions)}},
        },
    }


def _resource(entry: FileEntry, url: str | None) -> dict[str, Any]:
    resource = {"name": entry.name, "digest": {"sha256": entry.sha256}}
    return {"uri": url, **resource} if url else resource


def _package(package: Package) -> dict[str, Any]:
    resource: dict[str, Any] = {"name": package.name, "uri": package.package_url}
    if package.content:
        # A digest over all installed files, not that of a wheel, so it is not an artifact's sha256.
        resource["annotations"] = {"content": package.content}
    return resource
