"""SBOM and provenance of a program, from a manifest and what the model states."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from example_manifest import MANIFEST

from rules_executorch.checkpoint.license import Source, check_license, read_source
from rules_executorch.checkpoint.model_card import ModelCard, card_of_gguf, front_matter, read_card
from rules_executorch.cli import main
from rules_executorch.common import schema
from rules_executorch.common.errors import UserError
from rules_executorch.export.options import Quantization
from rules_executorch.records.installed_packages import Package, compile_packages
from rules_executorch.records.manifest import DataEntry, QuantizationEntry
from rules_executorch.records.sbom import Origin, make_sbom

REVISION = "0123456789abcdef0123456789abcdef01234567"
CARD = """---
license: apache-2.0
base_model:
- example/base-1B
base_model_relation: finetune
datasets:
- example/words
- more words
---
# A model
"""
MARKER = {
    "schema_version": 1,
    "wheels": [
        {"name": "torch", "version": "2.13.0+cpu", "tags": [], "content": "sha256:" + "e" * 64},
        {"name": "no-such-package", "version": "1", "tags": [], "content": "sha256:" + "f" * 64},
    ],
}


def card(folder: Path, text: str = CARD) -> ModelCard:
    path = folder / "README.md"
    path.write_text(text)
    return read_card(str(path))


def packages(folder: Path, marker: Any = MARKER) -> list[Package]:
    path = folder / "marker.json"
    path.write_text(json.dumps(marker))
    return compile_packages(str(path), MANIFEST.versions)


def sbom(folder: Path, **changes: Any) -> dict[str, Any]:
    origin = Origin(
        **{"name": "tiny", "source": Source("example/tiny", REVISION), "package_url": None}
        | {"card": card(folder)}
        | changes
    )
    value = make_sbom("tiny_xnnpack", MANIFEST, origin, packages(folder))
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(value))
    assert problem is None, problem
    return value


def components(value: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {component["bom-ref"]: component for component in value["components"]}


def test_the_model_is_named_by_repository_and_commit(tmp_path: Path) -> None:
    value = sbom(tmp_path)
    model = components(value)["model"]
    assert model["purl"] == f"pkg:huggingface/example/tiny@{REVISION}"
    assert model["type"] == "machine-learning-model"
    assert model["licenses"] == [{"license": {"id": "Apache-2.0"}}]
    assert model["modelCard"]["modelParameters"] == {
        "architectureFamily": "llama",
        "datasets": [{"ref": "dataset:example/words"}, {"ref": "dataset:more words"}],
        "modelArchitecture": "LlamaForCausalLM",
        "task": "text-generation",
    }


def test_the_program_has_its_digest(tmp_path: Path) -> None:
    program = sbom(tmp_path)["metadata"]["component"]
    assert program["name"] == "tiny_xnnpack.pte"
    assert program["hashes"] == [{"alg": "SHA-256", "content": "a" * 64}]


def test_lineage_and_data_sets(tmp_path: Path) -> None:
    value = sbom(tmp_path)
    found = components(value)
    assert found["base:example/base-1B"]["purl"] == "pkg:huggingface/example/base-1B"
    (ancestor,) = found["model"]["pedigree"]["ancestors"]
    assert ancestor["purl"] == "pkg:huggingface/example/base-1B"
    assert found["model"]["pedigree"]["notes"] == "base_model_relation: finetune"
    assert found["dataset:example/words"]["type"] == "data"
    depends = {entry["ref"]: entry.get("dependsOn", []) for entry in value["dependencies"]}
    assert depends["program"] == ["model"]
    assert "base:example/base-1B" in depends["model"]
    assert "file:model.safetensors" in depends["model"]


def test_the_packages_that_compiled_it(tmp_path: Path) -> None:
    found = components(sbom(tmp_path))
    torch = found["pkg:pypi/torch@2.13.0%2Bcpu"]
    assert torch["scope"] == "excluded"
    assert torch["properties"] == [
        {"name": "rules_executorch:content", "value": "sha256:" + "e" * 64}
    ]
    assert found["pkg:pypi/executorch@1.5.1"]["version"] == "1.5.1"


def test_a_marker_of_another_form_leaves_the_main_packages(tmp_path: Path) -> None:
    assert [package.name for package in packages(tmp_path, {"our": "form"})] == [
        "executorch",
        "torch",
    ]


def test_the_same_inputs_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = sbom(tmp_path), sbom(tmp_path)
    assert first == second
    assert "timestamp" not in first["metadata"]
    other = sbom(tmp_path, license="mit")
    assert other["serialNumber"] != first["serialNumber"]


def test_a_licence_without_an_identifier_has_its_name_and_link(tmp_path: Path) -> None:
    stated = card(
        tmp_path,
        "---\nlicense: other\nlicense_name: tiny-terms\nlicense_link: https://example.org/l\n---\n",
    )
    model = components(sbom(tmp_path, card=stated))["model"]
    assert model["licenses"] == [
        {"license": {"name": "tiny-terms", "url": "https://example.org/l"}}
    ]


def test_several_licences_are_several_entries(tmp_path: Path) -> None:
    stated = card(tmp_path, "---\nlicense: [mit, our-own]\n---\n")
    model = components(sbom(tmp_path, card=stated))["model"]
    assert model["licenses"] == [{"license": {"id": "MIT"}}, {"license": {"name": "our-own"}}]


def test_a_model_from_nowhere(tmp_path: Path) -> None:
    model = components(sbom(tmp_path, source=None, card=ModelCard()))["model"]
    assert model["name"] == "tiny"
    assert "purl" not in model
    assert "licenses" not in model


def test_a_package_url_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a package URL"):
        sbom(tmp_path, source=None, package_url="example/tiny")


def test_commands_write_both(tmp_path: Path) -> None:
    inputs = {
        "manifest": schema.to_json(MANIFEST),
        "marker": MARKER,
        "source": {"repo": "example/tiny", "revision": REVISION},
    }
    for name, value in inputs.items():
        (tmp_path / name).write_text(json.dumps(value))
    (tmp_path / "README.md").write_text(CARD)
    shared = ["--name=tiny_xnnpack"]
    shared += [f"--{name}={tmp_path / name}" for name in ("manifest", "marker", "source")]
    more = [
        "--model-name=tiny",
        f"--readme={tmp_path / 'README.md'}",
    ]
    assert main(["sbom", *shared, *more, f"--out={tmp_path / 'sbom.json'}"]) == 0
    assert json.loads((tmp_path / "sbom.json").read_text()) == sbom(tmp_path)

    data = tmp_path / "tiny.ptd"
    data.write_bytes(b"")
    more = ["--lowered=//:tiny_xnnpack", "--builder=https://example.org/ci", "--data", str(data)]
    assert main(["provenance", *shared, f"--out={tmp_path / 'p.json'}", *more]) == 0
    statement = json.loads((tmp_path / "p.json").read_text())
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
    assert statement["subject"][0] == {"name": "tiny_xnnpack.pte", "digest": {"sha256": "a" * 64}}
    assert statement["subject"][1]["name"] == "tiny_xnnpack.ptd"
    definition = statement["predicate"]["buildDefinition"]
    assert definition["externalParameters"]["target"] == "//:tiny_xnnpack"
    weights, *_ = definition["resolvedDependencies"]
    assert weights == {
        "digest": {"sha256": "d" * 64},
        "name": "model.safetensors",
        "uri": f"pkg:huggingface/example/tiny@{REVISION}",
    }
    assert statement["predicate"]["runDetails"]["builder"]["id"] == "https://example.org/ci"


@pytest.mark.parametrize(
    "value",
    [{}, {"repo": "example/tiny", "revision": "main"}, {"repo": "../x", "revision": REVISION}],
)
def test_a_source_without_a_commit_is_refused(tmp_path: Path, value: dict[str, str]) -> None:
    path = tmp_path / "huggingface.json"
    path.write_text(json.dumps(value))
    with pytest.raises(UserError, match="does not name a repository"):
        read_source(str(path))


@pytest.mark.parametrize(
    "text",
    [
        "no front matter",
        "---\nlicense: mit\n",
        "---\n- a list\n---\n",
        "---\nlicense: [[[\n---\n",
        "---\nlicense: {a: 1}\nbase_model: {b: 2}\ndatasets: [null, '../../etc', {}]\n---\n",
        "---\nlicense: null\nlicense_name: ~\nbase_model: null\nbase_model_relation:\n---\n",
        "---\nlicense: 'a\\nb'\n---\n",
    ],
)
def test_a_card_that_states_nothing_usable(tmp_path: Path, text: str) -> None:
    assert card(tmp_path, text) == ModelCard()


def test_a_tag_of_a_card_is_not_followed(tmp_path: Path) -> None:
    text = f"---\nlicense: !!python/object/apply:os.mkdir [{tmp_path / 'made'}]\n---\n"
    assert card(tmp_path, text) == ModelCard()
    assert not (tmp_path / "made").exists()


def test_front_matter_ends_at_its_line() -> None:
    assert front_matter("---\r\nlicense: mit\r\n---\r\n# license: gpl\r\n") == "license: mit"


def test_a_gguf_header_as_a_card() -> None:
    keys = {
        "general.license": "apache-2.0",
        "general.base_model.count": 2,
        "general.base_model.0.repo_url": "https://huggingface.co/example/base",
        "general.base_model.1.name": "Base Two",
        "general.base_model.1.organization": "example",
        "general.dataset.count": 1,
        "general.dataset.0.repo_url": "https://huggingface.co/datasets/example/words",
        "general.datasets": ["example/words", "example/more"],
    }
    assert card_of_gguf(keys) == ModelCard(
        license="apache-2.0",
        base_models=("example/base", "example/Base-Two"),
        datasets=("example/words", "example/more"),
    )
    assert card_of_gguf({"general.base_model.count": 2**62}) == ModelCard()


def test_a_denied_licence(tmp_path: Path) -> None:
    check_license("apache-2.0", None, ["cc-by-nc-*", "unknown"])
    check_license("Apache-2.0", "apache-2.0", [])
    with pytest.raises(UserError, match="has the licence cc-by-nc-4.0.*Use another model"):
        check_license("cc-by-nc-4.0", None, ["mit", "CC-BY-NC-*"])
    with pytest.raises(UserError, match="has the licence gpl-3.0"):
        check_license("mit AND gpl-3.0", None, ["gpl-*"])
    with pytest.raises(UserError, match="states no licence.*`license` of the hf_model"):
        check_license(None, None, ["unknown"])
    with pytest.raises(UserError, match='is not what the checkpoint states, which is "mit"'):
        check_license("mit", "apache-2.0", [])


def test_the_data_file_is_part_of_the_program() -> None:
    data = DataEntry("program.ptd", 900, "e" * 64, [])
    manifest = dataclasses.replace(MANIFEST, data=data)
    origin = Origin("tiny", None, None, ModelCard())
    program = make_sbom("tiny", manifest, origin, [])["metadata"]["component"]
    (part,) = program["components"]
    assert part["name"] == "tiny.ptd" and part["type"] == "file"
    assert part["hashes"] == [{"alg": "SHA-256", "content": "e" * 64}]
    bare = make_sbom("tiny", MANIFEST, origin, [])["metadata"]["component"]
    assert "components" not in bare


def test_quantization_is_stated(tmp_path: Path) -> None:
    quantization = QuantizationEntry(Quantization("8da4w"), {}, {}, {})
    manifest = dataclasses.replace(MANIFEST, quantization=quantization)
    origin = Origin("tiny", None, None, ModelCard())
    program = make_sbom("tiny", manifest, origin, [])["metadata"]["component"]
    assert {"name": "rules_executorch:quantization", "value": "8da4w"} in program["properties"]
