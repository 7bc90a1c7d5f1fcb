"""Readers of checkpoints: safetensors, index, GGUF, config, tokenizer, model card."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from fuzzing import ANYTHING, NUMBERS, SCALARS, bounded, damaged, read_or_refused
from hypothesis import given
from hypothesis import strategies as st

from rules_executorch.checkpoint import config as configs
from rules_executorch.checkpoint import strict_json, tokenizer
from rules_executorch.checkpoint.gguf import architectures
from rules_executorch.checkpoint.gguf import tokenizer as gguf_tokenizer
from rules_executorch.checkpoint.gguf.describe import describe_gguf
from rules_executorch.checkpoint.gguf.header import GgufFile
from rules_executorch.checkpoint.license import read_source
from rules_executorch.checkpoint.model_card import card_of_gguf, read_card
from rules_executorch.checkpoint.safetensors_file import SafetensorsFile
from rules_executorch.checkpoint.sharded import open_shards, read_index
from rules_executorch.checkpoint.sources import find_sources
from rules_executorch.common.errors import UserError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # The libraries that readers import on first use are no memory of a reader.
    import gguf  # noqa: F401
    import yaml  # noqa: F401

    folder = tmp_path_factory.mktemp("fuzz")
    configs.model_types("text-generation")
    for model_type in MODEL_TYPES:
        path = folder / "config.json"
        path.write_text(json.dumps(CONFIG | {"model_type": model_type}))
        configs.load_config(str(path))
    return folder


def safetensors(header: Any, data: bytes, claim: int | None = None) -> bytes:
    text = json.dumps(header).encode()
    return (len(text) if claim is None else claim).to_bytes(8, "little") + text + data


SOUND = safetensors(
    {
        "__metadata__": {"format": "pt"},
        "a.weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "b.weight": {"dtype": "BF16", "shape": [4], "data_offsets": [24, 32]},
    },
    bytes(range(32)),
)

ENTRIES = st.one_of(
    ANYTHING,
    st.fixed_dictionaries(
        {
            "dtype": st.one_of(SCALARS, st.sampled_from(["F32", "BF16", "I8", "F8_E5M2", "F4"])),
            "shape": st.one_of(ANYTHING, st.lists(NUMBERS, max_size=20)),
            "data_offsets": st.one_of(ANYTHING, st.lists(NUMBERS, min_size=2, max_size=2)),
        }
    ),
)


def read_all(path: Path) -> None:
    """Opens a file and reads every tensor of it."""
    with read_or_refused():
        file = SafetensorsFile(str(path))
        for entry in file.entries.values():
            assert 0 <= entry.begin <= entry.end <= path.stat().st_size
            assert all(type(size) is int and size >= 0 for size in entry.shape)


@bounded(200)
@given(data=damaged(SOUND))
def test_damaged_safetensors(folder: Path, data: bytes) -> None:
    path = folder / "damaged.safetensors"
    path.write_bytes(data)
    read_all(path)


@bounded(200)
@given(
    header=st.one_of(ANYTHING, st.dictionaries(st.text(max_size=6), ENTRIES, max_size=4)),
    data=st.binary(max_size=32),
    claim=st.one_of(st.none(), st.integers(0, 2**64 - 1)),
)
def test_odd_safetensors(folder: Path, header: Any, data: bytes, claim: int | None) -> None:
    path = folder / "odd.safetensors"
    path.write_bytes(safetensors(header, data, claim))
    read_all(path)


@bounded(150)
@given(
    index=st.one_of(
        ANYTHING,
        st.fixed_dictionaries(
            {
                "weight_map": st.one_of(
                    ANYTHING,
                    st.dictionaries(
                        st.sampled_from(["a.weight", "b.weight", "c"]),
                        st.one_of(
                            SCALARS, st.sampled_from(["shard.safetensors", "../x.safetensors"])
                        ),
                    ),
                )
            }
        ),
    )
)
def test_odd_indexes(folder: Path, index: Any) -> None:
    path, shard = folder / "model.safetensors.index.json", folder / "shard.safetensors"
    path.write_text(json.dumps(index))
    shard.write_bytes(SOUND)
    with read_or_refused():
        for name in read_index(str(path)).values():
            assert name == Path(name).name
        open_shards(str(path), [str(shard)])


STRINGS = st.text(max_size=8).map(lambda text: text.encode("utf-8", "surrogatepass"))
KINDS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
LLAMA_KEYS = [
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_rms_epsilon",
    "attention.sliding_window",
    "attention.sliding_window_pattern",
    "block_count",
    "context_length",
    "embedding_length",
    "expert_count",
    "feed_forward_length",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scaling.factor",
    "rope.scaling.type",
]
TOKENIZER_KEYS = [
    "add_bos_token",
    "bos_token_id",
    "eos_token_id",
    "merges",
    "model",
    "pre",
    "scores",
    "token_type",
    "tokens",
]


def gguf_string(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data


@st.composite
def gguf_values(draw: st.DrawFn) -> bytes:
    """The type and bytes of a value, mostly well formed."""
    kind = draw(st.sampled_from([*KINDS, 8, 8, 9, 9, 13]))
    head = struct.pack("<I", kind)
    if kind == 8:
        words = st.sampled_from([b"gpt2", b"llama", b"qwen2", b"linear", b"none", b"smollm"])
        return head + gguf_string(draw(st.one_of(STRINGS, words)))
    if kind == 9:
        inner = draw(st.sampled_from([*KINDS, 8, 9]))
        count = draw(st.integers(0, 4))
        claimed = draw(st.one_of(st.just(count), st.sampled_from([2**24, 2**40, 2**64 - 1])))
        items = b"".join(
            gguf_string(draw(STRINGS)) if inner == 8 else draw(scalars(inner)) for _ in range(count)
        )
        return head + struct.pack("<IQ", inner, claimed) + items
    return head + draw(scalars(kind))


def scalars(kind: int) -> st.SearchStrategy[bytes]:
    size = struct.calcsize("<" + KINDS.get(kind, "B"))
    small = st.integers(0, 80).map(lambda number: number.to_bytes(8, "little")[:size])
    return st.one_of(small, st.binary(min_size=size, max_size=size))


@st.composite
def ggufs(draw: st.DrawFn) -> bytes:
    """A file with the keys that are looked at, of any type and value, and a few tensors."""
    keys = {b"general.architecture": struct.pack("<I", 8) + gguf_string(b"llama")}
    if draw(st.booleans()):
        keys[b"general.architecture"] = draw(gguf_values())
    for name in draw(st.lists(st.sampled_from(LLAMA_KEYS), unique=True)):
        keys[f"llama.{name}".encode()] = draw(gguf_values())
    for name in draw(st.lists(st.sampled_from(TOKENIZER_KEYS), unique=True)):
        keys[f"tokenizer.ggml.{name}".encode()] = draw(gguf_values())
    for name in draw(st.lists(st.sampled_from(["alignment", "license", "base_model.count"]))):
        keys[f"general.{name}".encode()] = draw(gguf_values())
    tensors, data = [], b""
    names = [b"token_embd.weight", b"output.weight", b"rope_freqs.weight", b"blk.0.attn_q.weight"]
    for name in draw(st.lists(st.sampled_from(names), unique=True)):
        sizes = draw(st.lists(st.integers(1, 64), min_size=1, max_size=3))
        kind = draw(st.sampled_from([0, 0, 0, 1, 8, 99]))
        number = 4
        for size in sizes:
            number *= size
        entry = gguf_string(name) + struct.pack("<I", len(sizes))
        entry += struct.pack(f"<{len(sizes)}Q", *sizes) + struct.pack("<IQ", kind, len(data))
        tensors.append(entry)
        data += bytes(-(-number // 32) * 32)
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    header += b"".join(gguf_string(key) + value for key, value in keys.items())
    header += b"".join(tensors)
    return header + bytes(-len(header) % 32) + data


def read_gguf(path: Path) -> None:
    """Everything that is read of a header."""
    with read_or_refused():
        file = GgufFile(str(path))
        card_of_gguf(file.metadata)
        keys = architectures.Keys(file)
        architectures.names(file, keys)
        configs.check_config(architectures.config(file, keys), str(path))
    with read_or_refused():
        gguf_tokenizer.convert(GgufFile(str(path)))
    # The model that the tensors have to fit is made of Python objects.
    with read_or_refused(megabytes=32):
        describe_gguf(find_sources([str(path)]), "text-generation")


@bounded(250)
@given(data=ggufs())
def test_odd_gguf(folder: Path, data: bytes) -> None:
    path = folder / "odd.gguf"
    path.write_bytes(data)
    read_gguf(path)


@pytest.fixture(scope="module")
def model(folder: Path) -> bytes:
    """A header of llama.cpp's own package, with few tokens."""
    import gguf

    path = folder / "sound.gguf"
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(8)
    writer.add_block_count(1)
    writer.add_feed_forward_length(16)
    writer.add_head_count(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(["<s>", "a", "b", "ab"])
    writer.add_token_types([3, 1, 1, 1])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(0)
    import numpy

    writer.add_tensor("token_embd.weight", numpy.zeros((4, 8), numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


@bounded(250)
@given(data=st.data())
def test_damaged_gguf(folder: Path, model: bytes, data: st.DataObject) -> None:
    path = folder / "damaged.gguf"
    path.write_bytes(data.draw(damaged(model)))
    read_gguf(path)


MODEL_TYPES = ["llama", "gemma3_text", "qwen2", "gpt2"]

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "vocab_size": 320,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "rope_scaling": None,
    "head_dim": 16,
    "sliding_window": None,
    "hidden_act": "silu",
    "tie_word_embeddings": True,
    "eos_token_id": 2,
    "layer_types": None,
    "quantization_config": None,
    "auto_map": None,
    "text_config": None,
    "torch_dtype": "float32",
}


@bounded(150)
@given(
    changes=st.dictionaries(st.sampled_from(sorted(CONFIG)), ANYTHING, max_size=3),
    model_type=st.sampled_from(MODEL_TYPES),
)
def test_odd_configs(folder: Path, changes: dict[str, Any], model_type: str) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(CONFIG | {"model_type": model_type} | changes))
    with read_or_refused():
        config = configs.read_config(str(path))
        configs.check_model_type(config, str(path), "text-generation")
        configs.special_ids(config, {}, "eos_token_id", str(path))
        configs.max_positions(config)
        json.dumps(configs.normalized(config, "float32"))
    with read_or_refused(megabytes=16):
        configs.load_config(str(path))


@bounded(150)
@given(
    value=st.fixed_dictionaries(
        {
            "model": st.one_of(
                ANYTHING,
                st.fixed_dictionaries(
                    {
                        "vocab": st.one_of(
                            ANYTHING, st.dictionaries(st.text(max_size=4), NUMBERS, max_size=4)
                        )
                    }
                ),
            ),
            "added_tokens": st.one_of(
                ANYTHING,
                st.lists(
                    st.fixed_dictionaries({"id": NUMBERS, "content": SCALARS, "special": SCALARS}),
                    max_size=3,
                ),
            ),
            "chat_template": ANYTHING,
        }
    )
)
def test_odd_tokenizers(folder: Path, value: dict[str, Any]) -> None:
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(value))
    with read_or_refused():
        tokenizer.describe(str(path), str(path), None)


@bounded(150)
@given(data=st.one_of(st.binary(max_size=64), st.text(max_size=64).map(str.encode)))
def test_odd_json(folder: Path, data: bytes) -> None:
    path = folder / "odd.json"
    path.write_bytes(data)
    with read_or_refused():
        strict_json.read_object(str(path), limit=1000)


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_nesting_is_bounded(folder: Path, opening: bytes) -> None:
    path = folder / "deep.json"
    path.write_bytes(opening * 200_000)
    with pytest.raises(UserError, match="not readable as JSON"):
        strict_json.read_object(str(path), limit=10_000_000)


@bounded(150)
@given(
    lines=st.lists(
        st.sampled_from(
            [
                "license: mit",
                "license: [a, b]",
                "license: &x [*x]",
                "base_model: &a [x, y]",
                "datasets: [*a, *a]",
                "? [",
                "- 1",
                "<<: 1",
                "license: !!binary x",
                "license: 2020-99-99",
                "license: !!timestamp x",
                "license: 0x",
                "license: .inf",
                "license: !!int x",
                "---",
                "\t",
                "license: '\\ud800'",
                'license: "\\ud800"',
            ]
        ),
        max_size=5,
    )
)
def test_odd_model_cards(folder: Path, lines: list[str]) -> None:
    path = folder / "README.md"
    path.write_text("\n".join(["---", *lines, "---", ""]))
    with read_or_refused():
        card = read_card(str(path))
        assert card.license is None or card.license.isascii()


@bounded(100)
@given(value=st.one_of(ANYTHING, st.fixed_dictionaries({"repo": SCALARS, "revision": SCALARS})))
def test_odd_sources(folder: Path, value: Any) -> None:
    path = folder / "huggingface.json"
    path.write_text(json.dumps(value))
    with read_or_refused():
        read_source(str(path))
