"""Tokenizers rebuilt from GGUF files."""

from __future__ import annotations

import json
from pathlib import Path

import gguf_models
import pytest
from tokenizers import Tokenizer

from rules_executorch.checkpoint import tiny_tokenizer
from rules_executorch.checkpoint.gguf import tokenizer as gguf_tokenizer
from rules_executorch.checkpoint.gguf.header import GgufFile
from rules_executorch.common.errors import UserError

TEXTS = (
    "the and of in 2024, 31415",
    "<|im_start|>user\nhi<|im_end|>\n",
    "naïve 日本語 😀\t x\n\n y  z",
    " leading it's WON'T",
)


def rebuilt(folder: Path, architecture: str = "llama", **changes: object):
    path = gguf_models.write(folder / "m.gguf", architecture, layers=1, tokenizer=changes)
    value, settings, generation = gguf_tokenizer.convert(GgufFile(str(path)))
    return Tokenizer.from_str(json.dumps(value)), settings, generation, value


def test_byte_level_is_the_one_it_came_from(tmp_path: Path) -> None:
    found, settings, generation, _ = rebuilt(tmp_path, pre="gpt-2")
    value, _ = tiny_tokenizer.make(288, eos_ids=(2, 4), bos_id=1, pad_id=0)
    original = Tokenizer.from_str(json.dumps(value))
    assert found.get_vocab() == original.get_vocab()
    for text in TEXTS:
        assert found.encode(text).ids == original.encode(text).ids
        assert found.decode(found.encode(text).ids, skip_special_tokens=False) == text
    assert settings["eos_token"] == "<eos>"
    assert settings["chat_template"] == tiny_tokenizer.CHAT_TEMPLATE
    assert generation["eos_token_id"] == [2, 4]


def test_smollm_cuts_digits_apart(tmp_path: Path) -> None:
    found, *_ = rebuilt(tmp_path)
    cut = found.pre_tokenizer.pre_tokenize_str("in 2024")
    assert [piece for piece, _ in cut] == ["in", "Ġ", "2", "0", "2", "4"]


@pytest.mark.parametrize("pre", ["llama-bpe", "qwen2", "gpt-4o", "tekken"])
def test_splits_of_transformers(tmp_path: Path, pre: str) -> None:
    from transformers import AutoTokenizer

    found, *_ = rebuilt(tmp_path, pre=pre)
    reference = AutoTokenizer.from_pretrained(tmp_path, gguf_file="m.gguf").backend_tokenizer
    for text in TEXTS:
        ids = reference.encode(text, add_special_tokens=False).ids
        assert found.encode(text, add_special_tokens=False).ids == ids


def test_bos_goes_first_where_the_file_says_so(tmp_path: Path) -> None:
    found, *_ = rebuilt(tmp_path, add_bos_token=True)
    assert found.encode("the").ids[0] == 1
    assert 1 not in found.encode("the", add_special_tokens=False).ids


def test_user_defined_tokens_stay_whole_and_visible(tmp_path: Path) -> None:
    types = [1] * 288
    types[2] = types[4] = 4
    found, *_ = rebuilt(tmp_path, token_type=types)
    ids = found.encode("a<eos>b").ids
    assert 2 in ids
    assert found.decode(ids, skip_special_tokens=True) == "a<eos>b"


def test_sentencepiece(tmp_path: Path) -> None:
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256))]
    words = ["▁", "t", "h", "e", "th", "the", "▁the", "a", "n", "d", "an", "and", "▁and"]
    tokens = pieces + words
    changes = {
        "model": "llama",
        "pre": "default",
        "tokens": tokens,
        "token_type": [2, 3, 3] + [6] * 256 + [1] * len(words),
        "scores": [0.0] * len(pieces) + [-float(i) for i in range(len(words))],
        "merges": None,
        "eot_token_id": None,
        "padding_token_id": None,
        "unknown_token_id": 0,
        "add_bos_token": None,
    }
    found, settings, generation, _ = rebuilt(tmp_path, **changes)
    from transformers import AutoTokenizer

    reference = AutoTokenizer.from_pretrained(tmp_path, gguf_file="m.gguf")
    for text in ("the and", "and é", "then"):
        assert found.encode(text).ids == reference(text).input_ids
    assert found.encode("the").ids[0] == 1
    assert settings["unk_token"] == "<unk>"
    assert generation == {"bos_token_id": 1, "eos_token_id": [2]}


REFUSED = {
    "an unknown split": ({"pre": "mystery"}, "splits text by the rule 'mystery'"),
    "an unknown kind": ({"model": "rwkv"}, "of the kind 'rwkv'"),
    "no kind": ({"model": None}, "of the kind 'None'"),
    "no tokens": ({"tokens": None, "token_type": None}, "no `tokenizer.ggml.tokens`"),
    "tokens that are numbers": ({"tokens": [1] * 288}, "`tokenizer.ggml.tokens` that is not"),
    "a token twice": ({"tokens": ["a"] * 288}, "two tokens of one spelling"),
    "fewer types than tokens": ({"token_type": [1]}, "another number of types"),
    "no merges": ({"merges": None}, "no usable `tokenizer.ggml.merges`"),
    "a merge of three": ({"merges": ["a b c"]}, "no usable `tokenizer.ggml.merges`"),
    "an end id that is no token": ({"eos_token_id": 288}, "= 288, which is no token"),
    "an end id that is text": ({"eos_token_id": "2"}, "`tokenizer.ggml.eos_token_id` = '2'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(tmp_path: Path, name: str) -> None:
    changes, words = REFUSED[name]
    with pytest.raises(UserError, match=words) as caught:
        rebuilt(tmp_path, **changes)
    assert "m.gguf" in caught.value.what
    assert caught.value.instead
