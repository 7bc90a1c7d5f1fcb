"""Core ML packages: what is in them, and that their bytes come from the model alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import coremltools
import pytest
import tiny_programs
from executorch.backends.apple.coreml import executorchcoreml

from rules_executorch.backends.coreml.package import canonical_package, read_package, write_package

MODEL = "model.mlpackage/Data/com.apple.CoreML/model.mlmodel"
WEIGHTS = "model.mlpackage/Data/com.apple.CoreML/weights/weight.bin"


def spec(files: dict[str, bytes]) -> Any:
    return coremltools.proto.Model_pb2.Model.FromString(files[MODEL])


def operations(files: dict[str, bytes]) -> list[str]:
    functions = spec(files).mlProgram.functions
    return [
        op.type
        for f in functions.values()
        for b in f.block_specializations.values()
        for op in b.operations
    ]


@pytest.fixture(scope="module")
def package(dynamic_llama: tiny_programs.Exported, workspace: Path) -> bytes:
    path = workspace / "package.pte"
    tiny_programs.lower(dynamic_llama, path, "coreml", {"compute_units": "cpu_and_ne"})
    return tiny_programs.payload(str(path))


def test_a_cache_is_a_state_of_the_model(package: bytes) -> None:
    files = read_package(package)
    states = {state.name for state in spec(files).description.state}
    assert len(states) == 4 and all("cache" in name for name in states)
    assert spec(files).specificationVersion == coremltools.target.iOS18
    # Any number of positions is written at once.
    assert operations(files).count("scatter_nd") == 4


def test_executorch_reads_the_package(package: bytes, tmp_path: Path) -> None:
    assert executorchcoreml.unflatten_directory_contents(package, str(tmp_path))
    found = {
        str(path.relative_to(tmp_path / "lowered_module")): path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert found == read_package(package)
    loaded = coremltools.models.MLModel(
        str(tmp_path / "lowered_module" / "model.mlpackage"), skip_model_load=True
    )
    assert {i.name for i in loaded.get_spec().description.input} == {
        "input_ids",
        "cache_position",
    }


def test_nothing_random_is_left(package: bytes) -> None:
    files = read_package(package)
    metadata = spec(files).description.metadata.userDefined
    assert "com.github.apple.coremltools.conversion_date" not in metadata
    assert metadata["com.github.apple.coremltools.version"] == coremltools.__version__
    manifest = json.loads(files["model.mlpackage/Manifest.json"])
    assert manifest["rootModelIdentifier"] in manifest["itemInfoEntries"]
    assert canonical_package(package) == package


def test_identifiers_follow_the_content(package: bytes) -> None:
    files = read_package(package)
    changed = files | {WEIGHTS: files[WEIGHTS][:-1] + bytes([files[WEIGHTS][-1] ^ 1])}
    other = read_package(canonical_package(write_package(changed)))

    def identifier(files: dict[str, bytes]) -> str:
        return json.loads(files["metadata.json"])["identifier"]

    assert identifier(other).startswith("executorch_")
    assert identifier(other) != identifier(files)


def test_a_folder_survives_writing_and_reading(tmp_path: Path) -> None:
    files = {"a/b/c.bin": b'\0}{"\n', "a/d.txt": b"", "e": b"nodes"}
    blob = write_package(files)
    assert read_package(blob) == files
    assert write_package(dict(reversed(files.items()))) == blob
    assert executorchcoreml.unflatten_directory_contents(blob, str(tmp_path))
    assert (tmp_path / "lowered_module" / "a" / "b" / "c.bin").read_bytes() == files["a/b/c.bin"]


def test_precision_and_int8_weights(resnet: tiny_programs.Exported, tmp_path: Path) -> None:
    made = {}
    for name, options in {
        "half": {},
        "single": {"compute_precision": "float32", "deployment_target": "macOS15"},
        "int8": {"scheme": "int8_weights"},
    }.items():
        path = tmp_path / f"{name}.pte"
        lowered, info = tiny_programs.lower(resnet, path, "coreml", options)
        assert info.methods["forward"].delegates == {"CoreMLBackend": 1}
        assert lowered.delegation["forward"].share() == 1
        made[name] = read_package(tiny_programs.payload(str(path)))
    sizes = {name: len(files[WEIGHTS]) for name, files in made.items()}
    # Small weights keep their type.
    assert sizes["int8"] < 0.9 * sizes["half"] < 0.5 * sizes["single"]
    assert "constexpr_blockwise_shift_scale" in operations(made["int8"])
    assert "cast" in operations(made["half"]) and "cast" not in operations(made["single"])


def test_the_tanh_form_of_gelu_is_not_taken_for_the_exact_one(tmp_path: Path) -> None:
    config = tiny_programs.BERT | {"hidden_act": "gelu_pytorch_tanh"}
    exported = tiny_programs.export(tmp_path, config, tiny_programs.TEXTS)
    path = tmp_path / "model.pte"
    tiny_programs.lower(exported, path, "coreml")
    made = operations(read_package(tiny_programs.payload(str(path))))
    # The pooler has a tanh of its own.
    assert made.count("tanh") == 2 and "gelu" not in made
