"""A CycloneDX 1.6 ML-BOM of a program: the model, what it was made from, what compiled it.

Components are made and rendered by cyclonedx-python-lib; `modelCard` of the model is added to its
output, since the library does not know it (https://cyclonedx.org/docs/1.6/json/, "modelCard").
The bytes are a function of the inputs: there is no time, and the serial number is derived from the
content.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rules_executorch.checkpoint.model_card import AND
from rules_executorch.common.errors import UserError

if TYPE_CHECKING:
    from cyclonedx.model.component import Component

    from rules_executorch.checkpoint.license import Source
    from rules_executorch.checkpoint.model_card import ModelCard
    from rules_executorch.records.installed_packages import Package
    from rules_executorch.records.manifest import FileEntry, Manifest

_PREFIX = "rules_executorch:"


@dataclasses.dataclass(frozen=True)
class Origin:
    """What is known of a model beside its manifest.

    Attributes:
        name: of the hf_model, for a model without a repository on the hub.
        source: repository and commit, or None.
        package_url: of a model that comes from elsewhere, or None.
        card: what the checkpoint states.
        license: what its hf_model declares, or None.
    """

    name: str
    source: Source | None
    package_url: str | None
    card: ModelCard
    license: str | None = None

    @property
    def purl(self) -> str | None:
        return self.source.package_url if self.source else self.package_url


def make_sbom(
    name: str,
    manifest: Manifest,
    origin: Origin,
    packages: Sequence[Package],
) -> dict[str, Any]:
    """Describes a program.

    Args:
        name: of the program.
        manifest: of the program.
        origin: of its model.
        packages: that compiled it.

    Raises:
        UserError: the toolchain has no cyclonedx-python-lib, or a package URL is malformed.
    """
    try:
        from cyclonedx.model.bom import Bom, BomMetaData
        from cyclonedx.output.json import JsonV1Dot6
    except ModuleNotFoundError as error:
        raise UserError(
            "The toolchain's Python has no cyclonedx-python-lib, which writes the SBOM.",
            instead="Add it to the packages of your toolchain, or do not ask for the SBOM.",
        ) from error

    program = _program(name, manifest)
    model = _model(manifest, origin)
    files = [_file(entry) for entry in manifest.inputs.weights]
    bases = [_base(base) for base in origin.card.base_models]
    datasets = [_dataset(dataset) for dataset in origin.card.datasets]
    compilers = [_package(package) for package in packages]
    if bases:
        from cyclonedx.model.component import Pedigree

        relation = origin.card.base_relation
        notes = f"base_model_relation: {relation}" if relation else None
        model.pedigree = Pedigree(
            ancestors=[_base(b, "ancestor-") for b in origin.card.base_models], notes=notes
        )

    bom = Bom(
        metadata=BomMetaData(component=program),
        components=[model, *files, *bases, *datasets, *compilers],
    )
    bom.register_dependency(program, [model])
    bom.register_dependency(model, [*files, *bases, *datasets])
    value = json.loads(JsonV1Dot6(bom).output_as_string())

    model_value = next(c for c in value["components"] if c["bom-ref"] == "model")
    model_value["modelCard"] = _model_card(manifest, origin)
    # The library fills in the time and a random number.
    value["metadata"].pop("timestamp", None)
    value.pop("serialNumber", None)
    digest = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
    value["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, digest).urn
    return value


def _hashes(sha256: str) -> list[Any]:
    from cyclonedx.model import HashAlgorithm, HashType

    return [HashType(alg=HashAlgorithm.SHA_256, content=sha256)]


def _properties(values: Mapping[str, Any]) -> list[Any]:
    from cyclonedx.model import Property

    return [
        Property(name=_PREFIX + name, value=str(value))
        for name, value in values.items()
        if value is not None
    ]


def _purl(text: str) -> Any:
    from packageurl import PackageURL

    try:
        return PackageURL.from_string(text)
    except ValueError as error:
        raise UserError(
            f'package_url = "{text}" is not a package URL: {error}.',
            instead='Write "pkg:huggingface/OWNER/NAME@REVISION", or leave it out.',
        ) from error


def _licenses(card: ModelCard, declared: str | None) -> list[Any]:
    from cyclonedx.contrib.license.factories import LicenseFactory
    from cyclonedx.model import XsUri
    from cyclonedx.spdx import fixup_id

    stated = declared or card.license
    if not stated and not card.license_name:
        return []
    if not declared and (card.license_name or not stated):
        stated = card.license_name or stated
    link = card.license_link
    uri = XsUri(link) if link and link.startswith("https://") and not declared else None
    factory, found = LicenseFactory(), []
    for name in (stated or "").split(AND):
        # The hub writes identifiers in lower case.
        identifier = fixup_id(name)
        if identifier:
            found.append(factory.make_with_id(identifier, url=uri))
        else:
            found.append(factory.make_with_name(name, url=uri))
    return found


def _program(name: str, manifest: Manifest) -> Component:
    from cyclonedx.model.component import Component, ComponentType

    quantization = manifest.quantization
    data = manifest.data
    return Component(
        components=[_data(f"{name}.ptd", data)] if data else None,
        type=ComponentType.MACHINE_LEARNING_MODEL,
        name=f"{name}.pte",
        bom_ref="program",
        hashes=_hashes(manifest.program.sha256),
        properties=_properties(
            {
                "backend": manifest.lower.backend,
                "bytes": manifest.program.bytes,
                "dtype": manifest.export.dtype,
                "quantization": quantization and quantization.options.scheme,
            }
        ),
    )


def _data(name: str, data: FileEntry) -> Component:
    from cyclonedx.model.component import Component, ComponentType

    return Component(
        type=ComponentType.FILE,
        name=name,
        bom_ref="program-data",
        hashes=_hashes(data.sha256),
        properties=_properties({"bytes": data.bytes}),
    )


def _model(manifest: Manifest, origin: Origin) -> Component:
    from cyclonedx.model import ExternalReference, ExternalReferenceType, XsUri
    from cyclonedx.model.component import Component, ComponentType

    source = origin.source
    group, name = source.repo.split("/") if source else (None, origin.name)
    references = []
    if source:
        references = [
            ExternalReference(type=ExternalReferenceType.MODEL_CARD, url=XsUri(source.address))
        ]
    return Component(
        type=ComponentType.MACHINE_LEARNING_MODEL,
        group=group,
        name=name,
        version=source.revision if source else None,
        bom_ref="model",
        purl=_purl(origin.purl) if origin.purl else None,
        licenses=_licenses(origin.card, origin.license),
        external_references=references,
        properties=_properties(
            {
                "format": manifest.model.format,
                "parameters": manifest.model.parameters,
            }
        ),
    )


def _file(entry: FileEntry) -> Component:
    from cyclonedx.model.component import Component, ComponentType

    return Component(
        type=ComponentType.FILE,
        name=entry.name,
        bom_ref=f"file:{entry.name}",
        hashes=_hashes(entry.sha256),
        properties=_properties({"bytes": entry.bytes}),
    )


def _base(repo: str, prefix: str = "") -> Component:
    from cyclonedx.model.component import Component, ComponentType

    group, slash, name = repo.rpartition("/")
    return Component(
        type=ComponentType.MACHINE_LEARNING_MODEL,
        group=group or None,
        name=name,
        bom_ref=f"{prefix}base:{repo}",
        purl=_purl(f"pkg:huggingface/{repo}".replace(" ", "%20")) if slash else None,
    )


def _dataset(repo: str) -> Component:
    from cyclonedx.model import ExternalReference, ExternalReferenceType, XsUri
    from cyclonedx.model.component import Component, ComponentType

    group, slash, name = repo.rpartition("/")
    references = []
    if slash and " " not in repo:
        url = XsUri(f"https://huggingface.co/datasets/{repo}")
        references = [ExternalReference(type=ExternalReferenceType.WEBSITE, url=url)]
    return Component(
        type=ComponentType.DATA,
        group=group or None,
        name=name,
        bom_ref=f"dataset:{repo}",
        external_references=references,
    )


def _package(package: Package) -> Component:
    from cyclonedx.contrib.license.exceptions import InvalidLicenseExpressionException
    from cyclonedx.contrib.license.factories import LicenseFactory
    from cyclonedx.model.component import Component, ComponentScope, ComponentType

    licenses = []
    if package.license:
        try:
            licenses = [LicenseFactory().make_with_expression(package.license)]
        except InvalidLicenseExpressionException:
            licenses = [LicenseFactory().make_with_name(package.license)]
    return Component(
        type=ComponentType.LIBRARY,
        # It compiled the program but is not part of it.
        scope=ComponentScope.EXCLUDED,
        name=package.name,
        version=package.version,
        bom_ref=package.package_url,
        purl=_purl(package.package_url),
        licenses=licenses,
        properties=_properties({"content": package.content}),
    )


def _model_card(manifest: Manifest, origin: Origin) -> dict[str, Any]:
    parameters: dict[str, Any] = {
        "task": manifest.model.task,
        "architectureFamily": manifest.model.model_type,
        "modelArchitecture": manifest.model.architecture,
    }
    if origin.card.datasets:
        parameters["datasets"] = [{"ref": f"dataset:{name}"} for name in origin.card.datasets]
    return {"bom-ref": "model-card", "modelParameters": parameters}
