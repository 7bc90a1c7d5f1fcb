"""Tokenizer files read as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rules_executorch.checkpoint import tokenizer
from rules_executorch.common.errors import UserError

BPE: dict[str, Any] = {
    "model": {"vocab": {"a": 0, "b": 1}},
    "added_tokens": [{"id": 5, "content": "<eos>", "special": True}, {"id": 1, "content": "b"}],
}


def write(folder: Path, name: str, value: Any) -> str:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return str(path)


def test_bpe(tmp_path: Path) -> None:
    found = tokenizer.read(write(tmp_path, "tokenizer.json", BPE))
    assert found.ids == {0: "a", 1: "b", 5: "<eos>"}
    assert found.special == {5: "<eos>"}
    assert found.vocab_size == 6


def test_unigram(tmp_path: Path) -> None:
    value = {"model": {"vocab": [["<unk>", 0.0], ["x", -1.5]]}}
    assert tokenizer.read(write(tmp_path, "tokenizer.json", value)).ids == {0: "<unk>", 1: "x"}


def test_the_size_is_that_of_the_library(tmp_path: Path) -> None:
    from tokenizers import Tokenizer

    from rules_executorch.checkpoint import tiny_tokenizer

    value, _ = tiny_tokenizer.make(320, eos_ids=(2,), bos_id=1, pad_id=0)
    path = write(tmp_path, "tokenizer.json", value)
    assert tokenizer.read(path).vocab_size == Tokenizer.from_file(path).get_vocab_size() == 288


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({}, "no vocabulary"),
        ({"model": {"vocab": {}}}, "no vocabulary"),
        ({"model": {"vocab": {"a": -1}}}, "token id '-1'"),
        ({"model": {"vocab": {"a": 0.5}}}, "token id '0.5'"),
        ({"model": {"vocab": {"a": 2**40}}}, "token id"),
        ({**BPE, "added_tokens": [{"content": "x"}]}, "token id 'None'"),
        ({**BPE, "added_tokens": "x"}, "`added_tokens`"),
        ({**BPE, "added_tokens": [1]}, "`added_tokens`"),
        ("[]", "not an object"),
        ("{", "not readable as JSON"),
    ],
)
def test_refuses(tmp_path: Path, value: Any, words: str) -> None:
    path = write(tmp_path, "tokenizer.json", value)
    with pytest.raises(UserError, match=words) as caught:
        tokenizer.read(path)
    assert path in caught.value.what


def test_chat_template(tmp_path: Path) -> None:
    assert tokenizer.chat_template({}, None) is None
    assert tokenizer.chat_template({"chat_template": ""}, None) is None
    assert tokenizer.chat_template({"chat_template": "x"}, None) == "x"
    named = [{"name": "tool", "template": "t"}, {"name": "default", "template": "d"}]
    assert tokenizer.chat_template({"chat_template": named}, None) == "d"
    path = write(tmp_path, "chat_template.jinja", "from the file")
    assert tokenizer.chat_template({"chat_template": "x"}, path) == "from the file"


def test_refuses_a_template_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "chat_template.jinja"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="chat_template.jinja is not readable as text"):
        tokenizer.chat_template({}, str(path))


def test_describe(tmp_path: Path) -> None:
    path = write(tmp_path, "tokenizer.json", BPE)
    settings = write(tmp_path, "tokenizer_config.json", {"chat_template": "x"})
    found = tokenizer.describe(path, settings, None)
    assert (found.kind, found.vocab_size, found.chat_template) == ("tokenizer.json", 6, True)
    nothing = tokenizer.describe(None, None, None)
    assert (nothing.kind, nothing.vocab_size, nothing.chat_template) == (None, None, False)


def test_a_model_of_sentencepiece_alone_is_refused() -> None:
    with pytest.raises(UserError, match="as m/spiece.model alone") as caught:
        tokenizer.describe(None, None, None, "m/spiece.model")
    assert "AutoTokenizer" in (caught.value.instead or "")


def test_a_model_of_sentencepiece_beside_tokenizer_json(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text('{"model": {"vocab": {"a": 0, "b": 1}}}')
    assert tokenizer.describe(str(path), None, None, "m/spiece.model").vocab_size == 2
