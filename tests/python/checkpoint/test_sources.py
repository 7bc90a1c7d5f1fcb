"""Which file of a checkpoint is what, and which are refused by name."""

from __future__ import annotations

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


REFUSED = {
    "only a pickle": (["m/pytorch_model.bin", CONFIG], "pytorch_model.bin", "save_pretrained"),
    "a pickle beside safetensors": (
        ["m/model.safetensors", "m/optimizer.pt", CONFIG],
        "optimizer.pt",
        "leave the pickled ones out",
    ),
    "a pickle in capitals": (["m/MODEL.PTH", CONFIG], "MODEL.PTH", "safetensors"),
    "no weights": ([CONFIG], "no weights", "safetensors"),
    "other weights": ([CONFIG, "m/model.onnx"], "m/model.onnx cannot be read", "safetensors"),
    "no config": (["m/model.safetensors"], "no config.json", "config.json"),
    "two formats": ([CONFIG, "m/model.safetensors", "m/x.gguf"], "two formats", "Keep one"),
    "two GGUF files": (["m/x.gguf", "m/y.gguf"], "2 GGUF files", "merge"),
    "an adapter": ([CONFIG, "m/adapter_model.safetensors"], "adapter", "merge_and_unload"),
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
        "does not belong",
        "Remove",
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
