"""Manifest and report of a program, and `inspect`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import DESCRIPTION, Built

from rules_executorch.cli import main
from rules_executorch.common import schema
from rules_executorch.common.errors import UserError
from rules_executorch.common.text import size_text
from rules_executorch.lower.options import LowerOptions
from rules_executorch.program.inspect import inspect_program
from rules_executorch.records.describe import Inputs, make_manifest
from rules_executorch.records.manifest import (
    Manifest,
    Tied,
    VocabSize,
    file_entry,
    read_manifest,
)
from rules_executorch.records.report import render_report


@pytest.fixture(scope="module")
def manifest(llama_xnnpack: Built) -> Manifest:
    checkpoint = llama_xnnpack.checkpoint
    return make_manifest(
        Inputs(
            checkpoint.config_path,
            llama_xnnpack.exported_path,
            [checkpoint.weights_path],
            llama_xnnpack.path,
        ),
        llama_xnnpack.signature,
        DESCRIPTION,
        LowerOptions(backend="xnnpack"),
        llama_xnnpack.lowered,
        llama_xnnpack.info,
    )


def test_a_manifest_is_read_as_it_was_written(manifest: Manifest, tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    schema.write(str(path), manifest)
    assert read_manifest(str(path)) == manifest


def test_manifest_says_what_went_in_and_came_out(manifest: Manifest, llama_xnnpack: Built) -> None:
    assert manifest.program == file_entry(llama_xnnpack.path, "program.pte")
    assert manifest.inputs.weights[0].name == "model.safetensors"
    assert manifest.vocab_size == VocabSize(model=320, tokenizer=300)
    tied = Tied(["model.embed_tokens.weight", "lm_head.weight"], ["XnnpackBackend", "constants"])
    assert manifest.tied == [tied]
    forward = manifest.methods["forward"]
    assert forward.delegates["XnnpackBackend"] > 0
    assert "aten::embedding.out" in forward.operators
    assert "/" not in json.dumps(schema.to_json(manifest.inputs))


def test_report_shows_delegation_and_notes(manifest: Manifest) -> None:
    report = render_report(manifest)
    assert "| `aten::linear`" in report
    assert "stored 2 times" in report
    assert "320 entries and the tokenizer's 300" in report
    table = [line for line in report.splitlines() if line.startswith("| ")]
    assert len({len(line) for line in table if "aten::" in line}) == 1


def test_sizes_add_up(llama_xnnpack: Built) -> None:
    sizes = llama_xnnpack.info.sizes
    parts = sum(size for name, size in sizes.items() if name != "file")
    assert sizes["file"] == Path(llama_xnnpack.path).stat().st_size
    assert sizes["file"] - 4096 * 4 <= parts <= sizes["file"]
    assert size_text(1_500_000) == "1.50 MB" and size_text(12) == "12 B"


def test_inspect_command(llama_xnnpack: Built, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", llama_xnnpack.path, "--json"]) == 0
    shown = json.loads(capfd.readouterr().out)
    assert shown["constants"]["get_eos_ids"] == [2, 7, 9]
    assert main(["inspect", llama_xnnpack.path]) == 0
    text = capfd.readouterr().out
    assert "delegates of XnnpackBackend" in text and "get_max_context_len" in text


def test_inspect_runs_nothing_of_the_backend(gemma_portable: Built) -> None:
    method = gemma_portable.info.methods["forward"]
    assert method.delegates == {}
    assert [tensor.shape for tensor in method.inputs] == [[1, 32], [32]]
    assert all(tensor.dynamic for tensor in method.inputs)


@pytest.mark.parametrize("size", [0, 20, 3000])
def test_what_is_not_a_program_is_refused(tmp_path: Path, size: int) -> None:
    path = tmp_path / "thing.pte"
    path.write_bytes(b"x" * size)
    with pytest.raises(UserError, match="thing.pte is not a program"):
        inspect_program(str(path))


def test_a_cut_program_is_refused(llama_xnnpack: Built, tmp_path: Path) -> None:
    path = tmp_path / "cut.pte"
    path.write_bytes(Path(llama_xnnpack.path).read_bytes()[:9000])
    with pytest.raises(UserError, match="cut short"):
        inspect_program(str(path))


def test_a_damaged_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.pte"
    path.write_bytes(b"\xff\xff\xff\x7fET12" + b"\xff" * 5000)
    with pytest.raises(UserError, match="damaged"):
        inspect_program(str(path))


def test_a_missing_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no file"):
        inspect_program(str(tmp_path / "none.pte"))
