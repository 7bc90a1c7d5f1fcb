"""The .pt2: the same bytes from anywhere, no weights and no places in it, readable by torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from conftest import DESCRIPTION, Built, Checkpoint

import rules_executorch
from rules_executorch.checkpoint import description
from rules_executorch.checkpoint.weights import open_weights
from rules_executorch.common import schema
from rules_executorch.common.errors import UserError
from rules_executorch.export.generation import export_model
from rules_executorch.export.options import ExportOptions
from rules_executorch.export.pt2 import read_program, write_program
from rules_executorch.export.signature import read_signature
from rules_executorch.lower.bind import bind_weights
from rules_executorch.lower.options import LowerOptions
from rules_executorch.program.inspect import inspect_program
from rules_executorch.records.describe import Inputs, make_manifest
from rules_executorch.records.report import render_report

MAIN = Path(rules_executorch.__file__).parents[1] / "main.py"


def command(folder: Path, hash_seed: str, *arguments: str) -> None:
    """Runs the command line in another folder, with another hash seed."""
    environment = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": hash_seed, "HOME": str(folder)}
    subprocess.run([sys.executable, str(MAIN), *arguments], cwd=folder, env=environment, check=True)


@pytest.fixture(scope="module")
def elsewhere(
    tmp_path_factory: pytest.TempPathFactory, llama_xnnpack: Built, llama: Checkpoint
) -> Path:
    """The two actions as processes, with other names, folder and hash seed than the fixture's."""
    folder = tmp_path_factory.mktemp("else where")
    (folder / "export.json").write_text(json.dumps({"max_cache_len": 32, "max_seq_len": 16}))
    (folder / "lower.json").write_text(json.dumps({"backend": "xnnpack"}))
    description.write(str(folder / "description.json"), DESCRIPTION)
    command(
        folder,
        "77",
        *("export", "--options", "export.json", "--config", llama.config_path),
        *("--out-program", "other name.pt2", "--out-signature", "s.json"),
    )
    command(
        folder,
        "4711",
        *("lower", "--options", "lower.json", "--exported", "other name.pt2"),
        *("--signature", "s.json", "--model-description", "description.json"),
        *("--config", llama.config_path, "--weights", llama.weights_path),
        *("--out-program", "p.pte", "--out-manifest", "m.json", "--out-report", "r.md"),
    )
    return folder


def test_same_bytes_from_another_process(elsewhere: Path, llama_xnnpack: Built) -> None:
    assert (elsewhere / "other name.pt2").read_bytes() == Path(
        llama_xnnpack.exported_path
    ).read_bytes()
    assert read_signature(str(elsewhere / "s.json")) == llama_xnnpack.signature
    assert (elsewhere / "p.pte").read_bytes() == Path(llama_xnnpack.path).read_bytes()


def test_same_manifest_from_another_process(elsewhere: Path, llama_xnnpack: Built) -> None:
    checkpoint = llama_xnnpack.checkpoint
    made = make_manifest(
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
        inspect_program(llama_xnnpack.path),
    )
    assert json.loads((elsewhere / "m.json").read_text()) == schema.to_json(made)
    assert (elsewhere / "r.md").read_text() == render_report(made)


def test_no_place_and_no_moment_is_in_the_file(llama_xnnpack: Built) -> None:
    data = Path(llama_xnnpack.exported_path).read_bytes()
    for leak in (b"site-packages", b".py", b"/tmp", b"serialization_id", b"graph_id"):
        assert leak not in data
    with zipfile.ZipFile(llama_xnnpack.exported_path) as file:
        assert {info.date_time for info in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_no_weights_are_in_the_file(llama_xnnpack: Built) -> None:
    with zipfile.ZipFile(llama_xnnpack.exported_path) as file:
        sizes = {info.filename: info.file_size for info in file.infolist()}
    assert not any(size for name, size in sizes.items() if "/data/weights/weight_" in name)
    # Of the buffers only the eight inverse frequencies are not zeros.
    assert sum(size for name, size in sizes.items() if "/data/constants/tensor_" in name) == 32


def test_torch_reads_it_and_it_computes(llama_xnnpack: Built) -> None:
    from rules_executorch.run.parity import Eager

    loaded = torch.export.load(llama_xnnpack.exported_path)
    weights = open_weights([llama_xnnpack.checkpoint.weights_path])
    bind_weights(loaded, llama_xnnpack.signature, weights)
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        logits = loaded.module(check_guards=False)(input_ids=ids, cache_position=torch.arange(4))
    eager = Eager(llama_xnnpack.checkpoint.config, weights, "float32")
    assert torch.allclose(logits, eager.logits(ids, [3]), atol=1e-5)


def test_writing_again_gives_the_same_bytes(llama: Checkpoint, tmp_path: Path) -> None:
    options = ExportOptions(max_cache_len=8)
    for name in ("a.pt2", "b.pt2"):
        write_program(export_model(llama.config, options).program, str(tmp_path / name))
    assert (tmp_path / "a.pt2").read_bytes() == (tmp_path / "b.pt2").read_bytes()


def damaged(name: str, data: bytes) -> bytes:
    middle = len(data) // 2
    return {
        "empty": b"",
        "text": b"not a zip",
        "cut": data[:middle],
        "flipped": data[:middle] + bytes([data[middle] ^ 255]) + data[middle + 1 :],
        "other torch": data.replace(
            f'"torch_version":"{torch.__version__}"'.encode(),
            f'"torch_version":"9{str(torch.__version__)[1:]}"'.encode(),
        ),
    }[name]


class _Empty(torch.nn.Module):
    """With a constant that has no element, as a cache has before it is used."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("start", torch.zeros(2, 0), persistent=False)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.start, value], dim=1)


def test_a_constant_without_elements_is_read(tmp_path: Path) -> None:
    path = str(tmp_path / "empty.pt2")
    value = torch.arange(4.0).view(2, 2)
    write_program(torch.export.export(_Empty(), (value,)), path)
    read = read_program(path)
    assert read.constants["start"].shape == (2, 0)
    assert torch.equal(read.module()(value), value)


@pytest.mark.parametrize("name", ["empty", "text", "cut", "flipped", "other torch"])
def test_a_wrong_file_is_refused_in_words(llama_xnnpack: Built, tmp_path: Path, name: str) -> None:
    path = tmp_path / "wrong.pt2"
    path.write_bytes(damaged(name, Path(llama_xnnpack.exported_path).read_bytes()))
    with pytest.raises(UserError, match="wrong.pt2"):
        read_program(str(path))


def test_a_zip_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.pt2"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("hello", "world")
    with pytest.raises(UserError, match="not an exported program"):
        read_program(str(path))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere"):
        read_program(str(tmp_path / "nowhere.pt2"))


def test_weights_of_another_model_are_refused(llama_xnnpack: Built, gemma: Checkpoint) -> None:
    program = read_program(llama_xnnpack.exported_path)
    with pytest.raises(UserError):
        bind_weights(program, llama_xnnpack.signature, open_weights([gemma.weights_path]))
