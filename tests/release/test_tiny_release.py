"""A release as Bazel makes it: sound, and its statements valid against their own schemas."""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from rules_executorch.cli import main

ARCHIVE = Path("models/tiny_release.tar")
PROGRAMS = ["tiny_llama_portable", "tiny_llama_xnnpack"]


@pytest.fixture(scope="module")
def archive() -> Iterator[tarfile.TarFile]:
    with tarfile.open(ARCHIVE) as file:
        yield file


def content(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.extractfile(f"tiny_release/{name}")
    assert member
    return member.read()


def value(archive: tarfile.TarFile, name: str) -> dict[str, Any]:
    return json.loads(content(archive, name))


def test_it_is_sound(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(ARCHIVE)]) == 0
    assert hashlib.sha256(ARCHIVE.read_bytes()).hexdigest() in capsys.readouterr().out


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_belongs_to_a_program(archive: tarfile.TarFile, program: str) -> None:
    names = [name for name in archive.getnames() if f"/{program}/" in name]
    assert [name.rpartition("/")[2] for name in names] == [
        "generation_config.json",
        "manifest.json",
        "model.pte",
        "provenance.json",
        "report.md",
        "sbom.cdx.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_sbom_is_valid_and_names_the_packages(archive: tarfile.TarFile, program: str) -> None:
    text = content(archive, f"{program}/sbom.cdx.json").decode()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    sbom = json.loads(text)
    assert sbom["metadata"]["component"]["name"] == f"{program}.pte"
    libraries = {c["name"]: c for c in sbom["components"] if c["type"] == "library"}
    versions = value(archive, f"{program}/manifest.json")["versions"]
    # The ruleset is no package of the environment.
    del versions["rules_executorch"]
    assert {name: libraries[name]["version"] for name in versions} == versions
    # The whole environment, each package with the digest of what was installed.
    assert len(libraries) > 30
    assert all("properties" in library for library in libraries.values())
    (model,) = (c for c in sbom["components"] if c["bom-ref"] == "model")
    assert model["name"] == "tiny_llama"
    assert model["modelCard"]["modelParameters"]["modelArchitecture"] == "LlamaForCausalLM"


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_provenance_names_what_went_in(archive: tarfile.TarFile, program: str) -> None:
    statement = value(archive, f"{program}/provenance.json")
    digest = hashlib.sha256(content(archive, f"{program}/model.pte")).hexdigest()
    assert statement["subject"] == [{"name": f"{program}.pte", "digest": {"sha256": digest}}]
    definition = statement["predicate"]["buildDefinition"]
    assert definition["externalParameters"]["target"] == f"//models:{program}"
    found = {entry["name"]: entry for entry in definition["resolvedDependencies"]}
    for entry in value(archive, f"{program}/manifest.json")["inputs"]["weights"]:
        assert found[entry["name"]]["digest"]["sha256"] == entry["sha256"]
    assert found["torch"]["uri"].startswith("pkg:pypi/torch@")
    assert statement["predicate"]["runDetails"]["builder"]["id"] == "urn:rules_executorch:local"
