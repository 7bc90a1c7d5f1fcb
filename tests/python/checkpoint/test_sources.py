"""Which file of a checkpoint is what, and which are refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules_executorch.checkpoint.sources import find_sources
from rules_executorch.common.errors import UserError

CONFIG = "m/config.json"


def test_finds_every_role() -> None:
    found = find_sources(
        [
            "m/README.md",
            CONFIG,
            "m/model-00001-of-00002.safetensors",
            "m/model-00002-of-00002.safetensors",
            "m/model.safetensors.index.json",
            "m/tokenizer.json",
            "m/tokenizer_config.json",
            "m/chat_template.jinja",
            "m/generation_config.json",
            "m/vocab.json",
        ]
    )
    assert found.format == "safetensors"
    assert found.weights == (
        "m/model-00001-of-00002.safetensors",
        "m/model-00002-of-00002.safetensors",
    )
    assert found.index == "m/model.safetensors.index.json"
    assert found.chat_template == "m/chat_template.jinja"
    assert found.readme == "m/README.md"


def test_names_may_have_anything_in_them() -> None:
    found = find_sources(["my models/é#1/config.json", "my models/é#1/model.safetensors"])
    assert found.safetensors == ("my models/é#1/model.safetensors",)


def test_gguf_needs_no_config() -> None:
    assert find_sources(["m/a b.GGUF"]).format == "gguf"


HUB = [
    "m/.gitattributes",
    "m/1_Pooling/config.json",
    "m/2_Dense/config.json",
    "m/2_Dense/model.safetensors",
    "m/2_Dense/pytorch_model.bin",
    "m/LICENSE",
    "m/README.md",
    "m/config.json",
    "m/config_sentence_transformers.json",
    "m/consolidated.safetensors",
    "m/flax_model.msgpack",
    "m/images/figure.png",
    "m/model.safetensors",
    "m/onnx/config.json",
    "m/onnx/model.onnx",
    "m/openvino/openvino_model.xml",
    "m/original/consolidated.00.pth",
    "m/original/params.json",
    "m/pytorch_model.bin",
    "m/rust_model.ot",
    "m/tf_model.h5",
    "m/tokenizer.json",
    "m/vocab.txt",
]
"""What a folder of the hub holds."""


def test_a_whole_folder_of_the_hub() -> None:
    found = find_sources(HUB)
    assert found.safetensors == ("m/model.safetensors",)
    assert (found.config, found.tokenizer) == ("m/config.json", "m/tokenizer.json")
    assert found.index is None and found.gguf is None
    assert found.passed_over == (
        ".gitattributes",
        "1_Pooling/config.json",
        "2_Dense/config.json",
        "2_Dense/model.safetensors",
        "2_Dense/pytorch_model.bin",
        "consolidated.safetensors",
        "flax_model.msgpack",
        "images/figure.png",
        "onnx/config.json",
        "onnx/model.onnx",
        "openvino/openvino_model.xml",
        "original/consolidated.00.pth",
        "original/params.json",
        "pytorch_model.bin",
        "rust_model.ot",
        "tf_model.h5",
    )


MODULES = """[
  {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
  {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
  {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"}
]"""


def test_the_folders_of_modules_are_kept(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text(MODULES)
    paths = [str(tmp_path / path.removeprefix("m/")) for path in HUB]
    found = find_sources([*paths, str(tmp_path / "modules.json")])
    assert found.modules == str(tmp_path / "modules.json")
    assert found.module_files == {
        name: str(tmp_path / name)
        for name in ("1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors")
    }
    assert "2_Dense/pytorch_model.bin" in found.passed_over
    assert "1_Pooling/config.json" not in found.passed_over


def test_modules_are_a_list(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text('{"path": 1}')
    paths = [str(tmp_path / path.removeprefix("m/")) for path in HUB]
    with pytest.raises(UserError, match="not a list of modules"):
        find_sources([*paths, str(tmp_path / "modules.json")])


def test_the_first_module_may_have_a_folder() -> None:
    found = find_sources(
        [
            "m/0_Transformer/config.json",
            "m/0_Transformer/model.safetensors",
            "m/0_Transformer/tokenizer.json",
            "m/1_Pooling/config.json",
            "m/README.md",
        ]
    )
    assert found.config == "m/0_Transformer/config.json"
    assert found.tokenizer == "m/0_Transformer/tokenizer.json"
    assert found.safetensors == ("m/0_Transformer/model.safetensors",)
    assert found.passed_over == ("1_Pooling/config.json",)


def test_files_of_several_places() -> None:
    found = find_sources(["m/config.json", "out/bin/m/model.safetensors", "tokenizer.json"])
    assert found.safetensors == ("out/bin/m/model.safetensors",)
    assert found.tokenizer == "tokenizer.json"


def test_names_that_are_given() -> None:
    found = find_sources(
        ["a/config.json", "b/1/config.json", "c/model.safetensors"],
        names=["config.json", "1_Pooling/config.json", "model.safetensors"],
    )
    assert found.config == "a/config.json"
    assert found.passed_over == ("1_Pooling/config.json",)


def test_shards_win_over_other_files_of_weights() -> None:
    files = ["model-1.safetensors", "model-2.safetensors", "model.safetensors.index.json"]
    found = find_sources([CONFIG, *(f"m/{name}" for name in [*files, "consolidated.safetensors"])])
    assert found.index == "m/model.safetensors.index.json"


def test_an_adapter_beside_a_model_is_passed_over() -> None:
    found = find_sources([CONFIG, "m/model.safetensors", "m/adapter_model.safetensors"])
    assert found.safetensors == ("m/model.safetensors",)
    assert found.passed_over == ("adapter_model.safetensors",)


REFUSED = {
    "only a pickle": (["m/pytorch_model.bin", CONFIG], "pytorch_model.bin", "save_pretrained"),
    "a pickle in capitals": (["m/MODEL.PTH", CONFIG], "MODEL.PTH", "safetensors"),
    "no weights": ([CONFIG], "no weights", "safetensors"),
    "other weights": ([CONFIG, "m/model.onnx"], "m/model.onnx cannot be read", "safetensors"),
    "no config": (["m/model.safetensors"], "no config.json", "config.json"),
    "two formats": ([CONFIG, "m/model.safetensors", "m/x.gguf"], "two formats", "Keep one"),
    "two GGUF files": (["m/x.gguf", "m/y.gguf"], "2 GGUF files", "merge"),
    "an adapter": (
        [CONFIG, "m/adapter_config.json", "m/adapter_model.safetensors"],
        "adapter",
        "merge_and_unload",
    ),
    "shards without an index": (
        [CONFIG, "m/a.safetensors", "m/b.safetensors"],
        "no index",
        "model.safetensors.index.json",
    ),
    "two indexes": (
        [CONFIG, "m/a.safetensors.index.json", "m/b.safetensors.index.json"],
        "2 indexes",
        "Keep",
    ),
    "an index beside GGUF": (
        ["m/x.gguf", "m/model.safetensors.index.json"],
        "two formats",
        "Keep one",
    ),
    "weights in a folder": (
        [CONFIG, "m/fp16/model.safetensors"],
        "only weights lie in folders below",
        "beside config.json",
    ),
    "only pickles, in a folder": (
        [CONFIG, "m/original/consolidated.00.pth"],
        "only weights are pickled: m/original/consolidated.00.pth",
        "save_pretrained",
    ),
    "an adapter without a config": (
        ["m/adapter_config.json", "m/adapter_model.safetensors", "m/tokenizer.json"],
        "adapter (LoRA)",
        "merge_and_unload",
    ),
    "two configs": ([CONFIG, "n/config.json", "m/x.gguf"], "called config.json", "Keep the one"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name: str) -> None:
    files, what, instead = REFUSED[name]
    with pytest.raises(UserError) as caught:
        find_sources(files)
    assert what in caught.value.what
    assert instead in (caught.value.instead or "")
