"""A program and its weights in two files: what is where, who shares it, and what a mistake says."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

import pytest
import torch
from conftest import DESCRIPTION, LLAMA, Built, Checkpoint, build, make_checkpoint

from rules_executorch.backends import NAMES, find_backend
from rules_executorch.checkpoint import description
from rules_executorch.cli import main
from rules_executorch.common import schema
from rules_executorch.common.errors import UserError
from rules_executorch.export.options import ExportOptions, Quantization
from rules_executorch.lower import pipeline
from rules_executorch.lower.checks import check_lowering
from rules_executorch.lower.external_data import write_data
from rules_executorch.lower.options import LowerOptions
from rules_executorch.program.compare.files import compare_files
from rules_executorch.program.ptd import check_data, inspect_data, open_data, render
from rules_executorch.records.archive import write_release
from rules_executorch.records.describe import Inputs, make_manifest
from rules_executorch.records.manifest import FileEntry, Manifest, Tied
from rules_executorch.records.provenance import make_provenance
from rules_executorch.records.report import render_report
from rules_executorch.records.verify import verify_release
from rules_executorch.run.parity import RuntimeProgram

EMBEDDING = "model.model.embed_tokens.weight"
EMBEDDING_BYTES = 320 * 64 * 4
OPTIONS = ExportOptions(max_cache_len=32, max_seq_len=16)


@dataclasses.dataclass(frozen=True)
class Split:
    """A program and the path of its data file."""

    built: Built
    data: str

    @property
    def program(self) -> str:
        return self.built.path

    def digest(self) -> str:
        return hashlib.sha256(Path(self.data).read_bytes()).hexdigest()


def split(
    folder: Path, checkpoint: Checkpoint, options: ExportOptions, backend: str, **chosen: object
) -> Split:
    lowering = LowerOptions(backend=backend, backend_options=chosen, external_data=True)
    built = build(folder, checkpoint, options, lowering)
    return Split(built, str(folder / "model.ptd"))


@pytest.fixture(scope="module")
def llama_split(workspace: Path, llama: Checkpoint) -> Split:
    return split(workspace / "llama_split", llama, OPTIONS, "xnnpack")


@pytest.fixture(scope="module")
def gemma_split(workspace: Path, gemma: Checkpoint) -> Split:
    return split(workspace / "gemma_split", gemma, ExportOptions(max_cache_len=32), "portable")


def logits(program: str, data: str | None) -> torch.Tensor:
    positions = torch.arange(5)
    return RuntimeProgram(program, data)(torch.tensor([[5, 9, 11, 25, 3]]), positions).clone()


def test_two_files_give_the_logits_of_one(
    llama_xnnpack: Built, llama_split: Split, gemma_portable: Built, gemma_split: Split
) -> None:
    for one, two in ((llama_xnnpack, llama_split), (gemma_portable, gemma_split)):
        assert torch.equal(logits(one.path, None), logits(two.program, two.data))


def test_weights_leave_the_program_and_what_the_export_computed_stays(
    llama_xnnpack: Built, llama_split: Split
) -> None:
    sizes, whole = llama_split.built.info.sizes, llama_xnnpack.info.sizes
    assert sizes["named_data"] == 0 and whole["named_data"] > 3 * EMBEDDING_BYTES
    assert sizes["constants"] < 1000
    names = [tensor.name for tensor in inspect_data(llama_split.data)]
    assert EMBEDDING in names and "model.model.norm.weight" in names
    assert not [name for name in names if "inv_freq" in name]


def test_a_tied_matrix_is_stored_once(llama_split: Split) -> None:
    tensors = inspect_data(llama_split.data)
    (segment,) = (tensor.segment for tensor in tensors if tensor.name == EMBEDDING)
    assert [t.dtype for t in tensors if t.segment == segment] == ["float32", None]
    stored = sum({tensor.segment: tensor.bytes for tensor in tensors}.values())
    size = Path(llama_split.data).stat().st_size
    assert stored <= size < stored + 128 * len(tensors) + 4096
    assert sum(tensor.bytes for tensor in tensors) == stored + EMBEDDING_BYTES
    assert f"same bytes as {EMBEDDING}" in render(tensors)


def test_the_files_depend_on_nothing_but_the_inputs(
    workspace: Path, llama: Checkpoint, llama_split: Split
) -> None:
    again = split(workspace / "elsewhere" / "again", llama, OPTIONS, "xnnpack")
    assert Path(again.program).read_bytes() == Path(llama_split.program).read_bytes()
    assert again.digest() == llama_split.digest()
    for path in (again.program, again.data):
        assert str(workspace).encode() not in Path(path).read_bytes()


def test_programs_with_the_same_weights_have_the_same_data(
    workspace: Path, llama: Checkpoint, llama_split: Split
) -> None:
    longer = dataclasses.replace(OPTIONS, max_cache_len=64)
    others = [
        split(workspace / "longer", llama, longer, "xnnpack"),
        split(workspace / "per_op", llama, OPTIONS, "xnnpack", per_op_mode=True),
    ]
    assert len({Path(other.program).read_bytes() for other in (*others, llama_split)}) == 3
    assert {other.digest() for other in others} == {llama_split.digest()}
    # So any of them runs with the data of any other.
    assert torch.isfinite(logits(others[0].program, llama_split.data)).all()


def test_quantized_weights_and_their_scales_leave_too(workspace: Path) -> None:
    checkpoint = make_checkpoint(workspace / "quantized", LLAMA | {"num_hidden_layers": 1})
    options = dataclasses.replace(OPTIONS, quantization=Quantization("8da4w", embedding="8w"))
    lowering = LowerOptions(backend="xnnpack")
    whole = build(workspace / "quantized_whole", checkpoint, options, lowering)
    found = split(workspace / "quantized_split", checkpoint, options, "xnnpack")
    assert torch.equal(logits(whole.path, None), logits(found.program, found.data))
    dtypes = {tensor.dtype for tensor in inspect_data(found.data)}
    assert dtypes == {"int8", "float32", None}
    sizes = found.built.info.sizes
    assert sizes["constants"] < 1000 and sizes["named_data"] == 0


def test_vulkan_asks_for_its_weights_by_name(workspace: Path) -> None:
    checkpoint = make_checkpoint(workspace / "one_layer", LLAMA | {"num_hidden_layers": 1})
    found = split(workspace / "vulkan", checkpoint, OPTIONS, "vulkan")
    assert found.built.info.sizes["named_data"] == 0
    check_data(found.program, found.data)
    with pytest.raises(UserError, match=r"keeps \d+ tensors in a data file, and none is given"):
        check_data(found.program, None)


def test_a_program_without_its_data_is_refused(llama_split: Split, gemma_split: Split) -> None:
    for found in (llama_split, gemma_split):
        with pytest.raises(UserError, match="in a data file, and none is given") as refused:
            RuntimeProgram(found.program)
        assert "--data" in str(refused.value)
    with pytest.raises(UserError, match="There is no file .*nowhere.ptd"):
        RuntimeProgram(llama_split.program, "nowhere.ptd")


def test_the_data_of_another_program_is_refused(llama_split: Split, gemma_split: Split) -> None:
    with pytest.raises(UserError, match=r"lacks 15 of the 21 tensors") as refused:
        RuntimeProgram(llama_split.program, gemma_split.data)
    assert "written together with the program" in str(refused.value)


@pytest.mark.parametrize("name", NAMES)
def test_a_backend_takes_external_data_or_says_what_does(name: str) -> None:
    backend = find_backend(name)
    assert backend.external_data == (name in {"mlx", "portable", "vulkan", "webgpu", "xnnpack"})
    if not backend.external_data:
        with pytest.raises(UserError, match="compiles the weights into") as refused:
            check_lowering(backend, LowerOptions(name, external_data=True), backend.dtypes[0])
        assert "Leave external_data out" in str(refused.value)
        assert "xnnpack" in str(refused.value)


def test_no_data_file_is_written_for_nothing(tmp_path: Path, llama_xnnpack: Built) -> None:
    with pytest.raises(UserError, match="no weights that could be outside of it"):
        write_data(llama_xnnpack.lowered.manager, str(tmp_path / "model.ptd"))
    assert not (tmp_path / "model.ptd").exists()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: b"", "it has 0 bytes"),
        (lambda data: b"\0" * 100, "does not have the file identifier FT"),
        (lambda data: data[:-1], "is cut short"),
        (lambda data: b"\xff\xff\xff\x7f" + data[4:], "is damaged"),
        (lambda data: data[:60] + b"\xff" * 64 + data[124:], "is damaged"),
    ],
    ids=["empty", "zeros", "short", "root", "no-tensors"],
)
def test_a_damaged_file_is_refused(tmp_path: Path, llama_split: Split, damage, words) -> None:
    path = tmp_path / "damaged.ptd"
    path.write_bytes(damage(Path(llama_split.data).read_bytes()))
    with pytest.raises(UserError, match=words):
        inspect_data(str(path))


def test_contents_are_those_of_the_checkpoint(llama_split: Split, llama: Checkpoint) -> None:
    from rules_executorch.checkpoint.weights import open_weights

    with open_data(llama_split.data) as opened, open_weights([llama.weights_path]) as weights:
        tensor = weights.tensor("model.embed_tokens.weight")
        assert opened.contents(EMBEDDING) == tensor.numpy().tobytes()
        assert opened.tensors[EMBEDDING].shape == [320, 64]


def test_compare_names_the_tensors_that_differ(
    workspace: Path, llama_split: Split, gemma_split: Split
) -> None:
    assert compare_files(llama_split.data, llama_split.data) == []
    changed = workspace / "changed.ptd"
    with open_data(llama_split.data) as opened:
        data = bytearray(opened.data[:])
        offset, _ = opened.segments[opened.tensors[EMBEDDING].segment]
    data[offset + 4] ^= 1
    changed.write_bytes(data)
    found = compare_files(llama_split.data, str(changed))
    assert found[0] == (
        f"tensor `{EMBEDDING}`: 1 of 20,480 elements differs, the first at element 1"
    )
    assert len(found) == 2 and "1 of 81,920 bytes differs" in found[1]
    found = compare_files(llama_split.data, gemma_split.data)
    assert any("is in the first only" in line for line in found)
    assert any(f"`{EMBEDDING}` is float32 [320, 64] in the first" in line for line in found)


def test_inspect_shows_a_data_file(llama_split: Split, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", llama_split.data]) == 0
    assert f"{EMBEDDING} " in capsys.readouterr().out
    assert main(["inspect", llama_split.data, "--json"]) == 0
    tensors = json.loads(capsys.readouterr().out)["tensors"]
    assert tensors == [dataclasses.asdict(tensor) for tensor in inspect_data(llama_split.data)]


@pytest.fixture(scope="module")
def manifest(llama_split: Split) -> Manifest:
    built = llama_split.built
    return make_manifest(
        Inputs(
            built.checkpoint.config_path,
            built.exported_path,
            [built.checkpoint.weights_path],
            built.path,
            llama_split.data,
        ),
        built.signature,
        DESCRIPTION,
        LowerOptions(backend="xnnpack", external_data=True),
        built.lowered,
        built.info,
    )


def test_the_manifest_lists_the_data(manifest: Manifest, llama_split: Split) -> None:
    data = manifest.data
    assert data is not None
    assert data.name == "program.ptd" and data.sha256 == llama_split.digest()
    assert data.bytes == Path(llama_split.data).stat().st_size
    (embedding,) = (tensor for tensor in data.tensors if tensor.name == EMBEDDING)
    assert embedding.shape == [320, 64] and embedding.bytes == EMBEDDING_BYTES
    assert manifest.tied == [Tied(["model.embed_tokens.weight", "lm_head.weight"], ["data"])]
    report = render_report(manifest)
    assert "21 tensors are in the data file" in report and "stored once (data)" in report
    assert f"`{llama_split.digest()[:16]}`" in report


def test_a_release_is_verified_with_its_data(
    workspace: Path, manifest: Manifest, llama_split: Split, gemma_split: Split
) -> None:
    subjects = [FileEntry("tiny.ptd", 1, llama_split.digest())]
    texts = {
        "manifest": schema.to_json(manifest),
        "provenance": make_provenance("tiny", "//:tiny", "urn:test", manifest, None, [], subjects),
    }
    folder = workspace / "release"
    folder.mkdir()
    members = {"tiny/model.pte": llama_split.program}
    for name, value in texts.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
        members[f"tiny/{name}.json"] = str(folder / f"{name}.json")

    def faults(name: str, **more: str) -> list[str]:
        archive, scratch = folder / f"{name}.tar", folder / f"{name}.scratch"
        scratch.mkdir()
        data = {f"tiny/model.{what}": path for what, path in more.items()}
        write_release(str(archive), "assistant", members | data)
        return verify_release(str(archive), str(scratch))

    assert faults("whole", ptd=llama_split.data) == []
    assert faults("bare") == [
        "tiny/model.ptd is missing: manifest.json says that the program's weights are in it."
    ]
    found = faults("other", ptd=gemma_split.data)
    assert any("is not the data that manifest.json describes" in fault for fault in found)
    assert any("lacks 15 of the 21 tensors" in fault for fault in found)


def lower_arguments(folder: Path, built: Built, **options: object) -> list[str]:
    """The command line of `lower` with outputs in a folder, all but the data file."""
    (folder / "options.json").write_text(json.dumps({"backend": "xnnpack", **options}))
    description.write(str(folder / "description.json"), DESCRIPTION)
    schema.write(str(folder / "signature.json"), built.signature)
    inputs = {
        "options": str(folder / "options.json"),
        "exported": built.exported_path,
        "signature": str(folder / "signature.json"),
        "model-description": str(folder / "description.json"),
        "config": built.checkpoint.config_path,
        "weights": built.checkpoint.weights_path,
        "out-program": str(folder / "out" / "model.pte"),
        "out-manifest": str(folder / "out" / "manifest.json"),
        "out-report": str(folder / "out" / "report.md"),
    }
    (folder / "out").mkdir()
    return ["lower", *(f"--{name}={value}" for name, value in inputs.items())]


def test_outputs_are_whole_or_none(
    tmp_path: Path,
    llama_xnnpack: Built,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # As if a backend had taken every weight into its delegates.
    monkeypatch.setattr(pipeline, "lower_program", lambda *_: llama_xnnpack.lowered)
    arguments = lower_arguments(tmp_path, llama_xnnpack, external_data=True)
    assert main([*arguments, f"--out-data={tmp_path / 'out' / 'model.ptd'}"]) == 1
    assert "no weights that could be outside of it" in capsys.readouterr().err
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("external_data", [True, False])
def test_the_options_and_the_outputs_agree(
    tmp_path: Path, llama_xnnpack: Built, capsys: pytest.CaptureFixture[str], external_data: bool
) -> None:
    arguments = lower_arguments(tmp_path, llama_xnnpack, external_data=external_data)
    more = [] if external_data else [f"--out-data={tmp_path / 'out' / 'model.ptd'}"]
    assert main([*arguments, *more]) == 1
    assert "Give --out-data with external_data, and only with it" in capsys.readouterr().err
