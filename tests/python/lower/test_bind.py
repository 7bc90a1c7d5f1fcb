"""Checkpoints as transformers writes them, from `describe` to a bound program, against eager."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from rules_executorch.checkpoint.config import load_config
from rules_executorch.checkpoint.tasks import TASKS
from rules_executorch.checkpoint.weights import open_model_weights
from rules_executorch.cli import main
from rules_executorch.export.generation import export_model
from rules_executorch.export.options import ExportOptions
from rules_executorch.export.pt2 import read_program, write_program
from rules_executorch.lower.bind import bind_weights

CASES = Path(__file__).parent.parent.parent / "cases"

BUILT = {
    "renamed-tensors": "image-classification",
    "headed-encoder": "feature-extraction",
    "encoder-without-pooler": "feature-extraction",
    "positions-after-padding": "text-classification",
    "list-valued-heads": "image-classification",
    "counted-blocks": "image-classification",
}


def save(case: str, folder: Path) -> list[str]:
    """Random weights for the class that the case's config names, and files nobody needs."""
    config = transformers.AutoConfig.from_pretrained(CASES / case)
    torch.manual_seed(0)
    model = getattr(transformers, config.architectures[0])(config)
    model.save_pretrained(folder)
    (folder / "onnx").mkdir()
    (folder / "onnx" / "config.json").write_text("{}")
    (folder / "pytorch_model.bin").write_bytes(b"never opened")
    return [str(path) for path in sorted(folder.rglob("*")) if path.is_file()]


def describe(files: list[str], folder: Path, task: str) -> tuple[dict[str, Any], str]:
    folder.mkdir()
    model, config = str(folder / "model.json"), str(folder / "config.json")
    outputs = ["--out-config", config, "--out-model", model]
    assert main(["describe", "--task", task, "--files", *files, *outputs]) == 0
    return json.loads(Path(model).read_text()), config


@pytest.mark.parametrize("case", BUILT)
def test_a_case_is_as_eager(tmp_path: Path, case: str) -> None:
    task = BUILT[case]
    folder = tmp_path / "checkpoint"
    files = save(case, folder)
    description, config_path = describe(files, tmp_path / "described", task)
    assert {"onnx/config.json", "pytorch_model.bin"} <= set(description["passed_over"]["files"])
    left = description["passed_over"]["tensors"]
    assert all(name.startswith("cls.") for name in left)
    assert bool(left) == (BUILT[case] == "feature-extraction")
    config = load_config(config_path)
    exported = export_model(config, ExportOptions(task=task))
    write_program(exported.program, str(tmp_path / "program.pt2"))
    program = read_program(str(tmp_path / "program.pt2"))
    weights = open_model_weights([str(folder / "model.safetensors")], config, task)
    bind_weights(program, exported.signature, weights)
    eager = getattr(transformers, TASKS[task].auto_class).from_pretrained(folder).eval()
    torch.manual_seed(1)
    if task == "image-classification":
        size = eager.config.image_size
        inputs = {"pixel_values": torch.randn(1, 3, size, size)}
    else:
        # As long as it may be, so that the last position is one that the model has.
        length = exported.signature.max_seq_len
        assert length == description["max_position_embeddings"]
        inputs = {"input_ids": torch.randint(3, 320, (1, length))}
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        if any(tensor.name == "token_type_ids" for tensor in exported.signature.forward.inputs):
            inputs["token_type_ids"] = torch.zeros_like(inputs["input_ids"])
    with torch.no_grad():
        found = program.module(check_guards=False)(**inputs)[0]
        expected = eager(**inputs)[TASKS[task].outputs[0]]
    assert torch.allclose(found, expected, atol=1e-5, rtol=1e-5)


def test_positions_after_padding_are_what_the_model_takes(tmp_path: Path) -> None:
    files = save("positions-after-padding", tmp_path / "checkpoint")
    description, config_path = describe(files, tmp_path / "described", "text-classification")
    assert description["max_position_embeddings"] == 64
    assert load_config(config_path).max_position_embeddings == 66


def test_a_missing_tensor_is_named_before_any_export(tmp_path: Path, capsys) -> None:
    files = save("headed-encoder", tmp_path / "checkpoint")
    path = tmp_path / "checkpoint" / "model.safetensors"
    tensors = load_file(path)
    del tensors["bert.encoder.layer.0.output.dense.weight"]
    save_file(tensors, path)
    outputs = ["--out-config", str(tmp_path / "c"), "--out-model", str(tmp_path / "m")]
    task = ["--task", "feature-extraction"]
    assert main(["describe", *task, "--files", *files, *outputs]) == 1
    assert "encoder.layer.0.output.dense.weight" in capsys.readouterr().err
    assert not (tmp_path / "c").exists() and not (tmp_path / "m").exists()


def test_an_unread_tensor_is_not_asked_for(tmp_path: Path) -> None:
    config = load_config(str(CASES / "encoder-without-pooler" / "config.json"))
    signature = export_model(config, ExportOptions(task="feature-extraction")).signature
    names = [tensor.name for tensor in signature.parameters]
    assert "encoder.layer.1.output.dense.weight" in names
    assert not any("pooler" in name for name in names)


def test_a_sentence_transformer_keeps_its_folders(tmp_path: Path) -> None:
    source = CASES / "sentence-transformers"
    folder = tmp_path / "checkpoint"
    save("sentence-transformers", folder)
    for path in source.rglob("*.json"):
        (folder / path.relative_to(source)).parent.mkdir(exist_ok=True)
        (folder / path.relative_to(source)).write_bytes(path.read_bytes())
    files = [str(path) for path in sorted(folder.rglob("*")) if path.is_file()]
    description, _ = describe(files, tmp_path / "described", "feature-extraction")
    passed_over = description["passed_over"]["files"]
    assert "onnx/config.json" in passed_over
    assert not any(name.startswith(("1_Pooling", "2_Dense", "modules")) for name in passed_over)
