"""`describe` for every field case and tiny model: what it writes is written down."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import gguf_models
import pytest
from builders import CASES, MODELS, floats

from rules_executorch.checkpoint import description
from rules_executorch.checkpoint.describe import license_of
from rules_executorch.cli import main
from rules_executorch.common.errors import UserError

PYTHON = Path(__file__).parent.parent.parent.parent / "python"
EXPECTED = Path(__file__).parent / "expected"

REFUSED_CASES = {"missing-shard", "remote-code"}
BUILT = sorted(
    path.parent.name
    for path in CASES.glob("*/config.json")
    if "ForCausalLM" in path.read_text() and path.parent.name not in REFUSED_CASES
)
TINY = ("llama", "gemma3", "qwen2")


def checkpoint(source: Path, folder: Path) -> list[str]:
    """A tiny checkpoint of a committed config, in a folder whose name is awkward."""
    folder = folder / "a model #1 é"
    folder.mkdir()
    for file in source.glob("*.json"):
        (folder / file.name).write_bytes(file.read_bytes())
    arguments = ["tiny", "--config", str(folder / "config.json")]
    generation = folder / "generation_config.json"
    if generation.exists():
        arguments += ["--generation-config", str(generation)]
    arguments += ["--out-weights", str(folder / "model.safetensors")]
    arguments += ["--out-tokenizer", str(folder / "tokenizer.json")]
    arguments += ["--out-tokenizer-config", str(folder / "tokenizer_config.json")]
    assert main(arguments) == 0
    return [str(path) for path in sorted(folder.iterdir())]


def describe(files: list[str], folder: Path, *more: str) -> tuple[dict, dict]:
    out_config, out_model = str(folder / "config.json"), str(folder / "model.json")
    outputs = ["--out-config", out_config, "--out-model", out_model, *more]
    assert main(["describe", "--files", *files, *outputs]) == 0
    return json.loads(Path(out_model).read_text()), json.loads(Path(out_config).read_text())


@pytest.mark.parametrize("name", [*BUILT, *(f"tiny-{model}" for model in TINY)])
def test_golden(tmp_path: Path, name: str) -> None:
    tiny = name.startswith("tiny-")
    source = MODELS / name.removeprefix("tiny-") if tiny else CASES / name
    model, config = describe(checkpoint(source, tmp_path), tmp_path)
    expected = EXPECTED / f"{name}.json"
    found = {"model.json": model, "config.json": config}
    if os.environ.get("UPDATE_EXPECTED"):
        expected.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")
    assert found == json.loads(expected.read_text())


def test_the_cases_say_what_they_are_for() -> None:
    def model(name: str) -> dict:
        return json.loads((EXPECTED / f"{name}.json").read_text())["model.json"]

    assert model("explicit-head-dim")["head_dim"] == 32
    assert model("eos-list")["eos_ids"] == [2, 7, 9]
    assert model("no-generation-config")["eos_ids"] == [2]
    assert model("bfloat16")["dtype"] == "bfloat16"
    assert model("tied-embedding")["tied_embeddings"] is True
    assert model("sliding-window")["sliding_window"] == 16
    padded = model("vocab-larger-than-tokenizer")
    assert (padded["vocab_size"], padded["tokenizer"]["vocab_size"]) == (320, 288)


def test_missing_shard(tmp_path: Path, capsys) -> None:
    case = CASES / "missing-shard"
    shard = floats(tmp_path / "model-00001-of-00002.safetensors", model__embed_tokens__weight=(8,))
    files = [str(shard), *(str(path) for path in case.glob("*.json"))]
    out = tmp_path / "out"
    out.mkdir()
    arguments = ["--out-config", str(out / "config.json"), "--out-model", str(out / "model.json")]
    assert main(["describe", "--target", "//m:m", "--files", *files, *arguments]) == 1
    text = capsys.readouterr().err
    assert "ERROR in //m:m" in text
    assert "is not given: model-00002-of-00002.safetensors" in text
    assert "Add the missing files to `srcs`" in text
    assert not any(out.iterdir())


def test_remote_code(tmp_path: Path, capsys) -> None:
    shard = floats(tmp_path / "model.safetensors", a=(8,))
    files = [str(shard), str(CASES / "remote-code" / "config.json")]
    arguments = ["--out-config", str(tmp_path / "c"), "--out-model", str(tmp_path / "m")]
    assert main(["describe", "--files", *files, *arguments]) == 1
    text = capsys.readouterr().err
    assert "modeling_custom.CustomForCausalLM" in text
    assert "never run in a build" in text


def write_config(folder: Path, **changes: object) -> str:
    config = json.loads((MODELS / "llama" / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))
    return str(folder / "config.json")


LAYERS = {f"model__layers__{i}__mlp__up_proj__weight": (4, 4) for i in (0, 1)}
EMBEDDING = {"model__embed_tokens__weight": (288, 64)}


@pytest.mark.parametrize(
    ("shapes", "changes", "words"),
    [
        (EMBEDDING | LAYERS, {"vocab_size": 300}, "vocabulary of 300.*288 rows"),
        (EMBEDDING | LAYERS, {"num_hidden_layers": 3}, "3 layers.*have 2"),
        (EMBEDDING | LAYERS, {"model_type": "nonsense"}, "'nonsense'"),
        (LAYERS, {"vocab_size": 0}, "`vocab_size`"),
    ],
)
def test_refuses_a_config_that_does_not_fit(
    tmp_path: Path, capsys, shapes: dict, changes: dict, words: str
) -> None:
    weights = floats(tmp_path / "model.safetensors", **shapes)
    files = [str(weights), write_config(tmp_path, **changes)]
    out = ["--out-config", str(tmp_path / "c"), "--out-model", str(tmp_path / "m")]
    assert main(["describe", "--files", *files, *out]) == 1
    text = " ".join(capsys.readouterr().err.split())
    assert re.search(words, text), text
    assert not (tmp_path / "c").exists() and not (tmp_path / "m").exists()


def test_deterministic(tmp_path: Path) -> None:
    files = checkpoint(MODELS / "llama", tmp_path)
    found = []
    for seed in ("0", "1"):
        folder = tmp_path / seed
        folder.mkdir()
        out = ["--out-config", str(folder / "c"), "--out-model", str(folder / "m")]
        command = [sys.executable, str(PYTHON / "main.py"), "describe", "--files", *files, *out]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": seed})
        found.append(((folder / "c").read_bytes(), (folder / "m").read_bytes()))
    assert found[0] == found[1]


def test_gguf(tmp_path: Path) -> None:
    path = gguf_models.write(tmp_path / "m.gguf", kind="Q4_1")
    names = ("tokenizer", "tokenizer-config", "generation-config")
    more = [word for n in names for word in (f"--out-{n}", str(tmp_path / f"{n}.json"))]
    model, config = describe([str(path)], tmp_path, *more)
    assert model["format"] == "gguf"
    assert model["dtype"] == "Q4_1"
    assert model["license"] == "apache-2.0"
    assert model["eos_ids"] == [2, 4]
    assert model["tokenizer"] == {
        "chat_template": True,
        "kind": "tokenizer.json",
        "vocab_size": 288,
    }
    assert model["num_parameters"] == sum(
        math.prod(s) for s in gguf_models.shapes("llama", 2, True).values()
    )
    assert config["architectures"] == ["LlamaForCausalLM"]
    generation = json.loads((tmp_path / "generation-config.json").read_text())
    assert generation == {"bos_token_id": 1, "eos_token_id": [2, 4], "pad_token_id": 0}


def test_a_gguf_of_more_layers_than_it_has(tmp_path: Path, capsys) -> None:
    path = gguf_models.write(tmp_path / "m.gguf")
    config = write_config(tmp_path, num_hidden_layers=4000)
    out = ["--out-config", str(tmp_path / "c"), "--out-model", str(tmp_path / "m")]
    assert main(["describe", "--files", str(path), config, *out]) == 1
    assert "says 4000 layers" in capsys.readouterr().err
    assert not (tmp_path / "c").exists()


def test_files_beside_gguf_win(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    path = gguf_models.write(tmp_path / "model" / "m.gguf")
    given = tmp_path / "given"
    given.mkdir()
    generation = given / "generation_config.json"
    generation.write_text('{"eos_token_id": 9}')
    out = str(tmp_path / "generation_config.json")
    model, _ = describe([str(path), str(generation)], tmp_path, "--out-generation-config", out)
    assert model["eos_ids"] == [9]
    assert json.loads(Path(out).read_text()) == {"eos_token_id": 9}


def test_gguf_outputs_are_refused_for_safetensors(tmp_path: Path, capsys) -> None:
    files = [str(floats(tmp_path / "model.safetensors", **EMBEDDING)), write_config(tmp_path)]
    out = ["--out-config", "c", "--out-model", "m", "--out-tokenizer", "t"]
    assert main(["describe", "--files", *files, *out]) == 1
    assert "--out-tokenizer was given, but the weights are safetensors" in capsys.readouterr().err


def test_description_round_trip(tmp_path: Path) -> None:
    for expected in EXPECTED.glob("*.json"):
        value = json.loads(expected.read_text())["model.json"]
        path = tmp_path / "model.json"
        path.write_text(json.dumps(value))
        found = description.read(str(path))
        description.write(str(tmp_path / "again.json"), found)
        assert json.loads((tmp_path / "again.json").read_text()) == value
        assert isinstance(found.eos_ids, tuple)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema_version": 2}, "schema_version"),
        ({"eos_ids": 2}, "eos_ids"),
        ({"extra": 1}, "top level"),
        ({"tokenizer": {"kind": None}}, "tokenizer"),
        ({"vocab_size": 0}, "vocab_size"),
    ],
)
def test_description_refuses(tmp_path: Path, change: dict, words: str) -> None:
    value = json.loads((EXPECTED / "tiny-llama.json").read_text())["model.json"]
    path = tmp_path / "model.json"
    path.write_text(json.dumps(value | change))
    with pytest.raises(UserError, match=words):
        description.read(str(path))


@pytest.mark.parametrize(
    ("text", "license"),
    [
        ("---\nlicense: apache-2.0\n---\n# Model", "apache-2.0"),
        ("---\r\nlanguage: en\r\nlicense: 'mit'\r\n---\r\n", "mit"),
        ("# Model\nlicense: mit\n", None),
        ("---\nlanguage: en\n---\nlicense: mit\n", None),
        ("---\nlicense:\n  - mit\n---\n", "mit"),
        ("---\nlicense: [mit, isc]\n---\n", "mit AND isc"),
        ("---\nlicense: {mit: yes}\n---\n", None),
        ("", None),
    ],
)
def test_license(tmp_path: Path, text: str, license: str | None) -> None:
    path = tmp_path / "README.md"
    path.write_bytes(text.encode())
    assert license_of(str(path)) == license
    assert license_of(None) is None


def test_a_denied_licence_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = checkpoint(MODELS / "llama", tmp_path)
    readme = tmp_path / "README.md"
    readme.write_text("---\nlicense: cc-by-nc-4.0\n---\n")
    out = tmp_path / "out"
    out.mkdir()

    def run(*more: str) -> int:
        outputs = ["--out-config", str(out / "config.json"), "--out-model", str(out / "model.json")]
        files_of_model = [*files, str(readme)]
        return main(["describe", "--target", "//m:m", "--files", *files_of_model, *more, *outputs])

    assert run("--denied-licenses", "gpl-*", "cc-by-nc-*") == 1
    assert list(out.iterdir()) == []
    error = " ".join(capsys.readouterr().err.split())
    assert error == (
        'ERROR in //m:m: The model has the licence cc-by-nc-4.0, which "cc-by-nc-*" in'
        " @rules_executorch//executorch/settings:denied_licenses denies. Use another model, or take"
        " the licence off the list once it is cleared."
    )
    assert run("--license", "apache-2.0") == 1
    assert "is not what the checkpoint states" in capsys.readouterr().err
    assert run("--license", "cc-by-nc-4.0", "--denied-licenses", "gpl-*") == 0
    assert json.loads((out / "model.json").read_text())["license"] == "cc-by-nc-4.0"
