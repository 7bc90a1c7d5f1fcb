"""The tokenizer of a GGUF file, as tokenizer.json and tokenizer_config.json.

Byte-level BPE (`tokenizer.ggml.model = gpt2`) is rebuilt here, since the way that text is split
before the merges (`tokenizer.ggml.pre`) decides the result. SentencePiece vocabularies go through
transformers' converter.
"""

from __future__ import annotations

import json
from typing import Any

from rules_executorch.checkpoint.gguf.header import GgufFile
from rules_executorch.checkpoint.tiny_tokenizer import byte_characters
from rules_executorch.common.errors import UserError

_CONTROL, _USER_DEFINED = 3, 4

# `tokenizer.ggml.pre` values whose split is that of GPT-2, and those that cut digits apart first
# (`llm_tokenizer_bpe` in llama.cpp's src/llama-vocab.cpp).
_GPT2_SPLIT = frozenset({"gpt-2", "default", "phi-2", "olmo", "jina-es", "jina-de", "gigachat"})
_DIGITS_THEN_GPT2 = frozenset({"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone"})
_SENTENCEPIECE = ("llama",)

_SPECIAL = {
    "bos_token": "bos_token_id",
    "eos_token": "eos_token_id",
    "unk_token": "unknown_token_id",
    "pad_token": "padding_token_id",
}
_END_IDS = ("eos_token_id", "eot_token_id", "eom_token_id")


class _Vocabulary:
    """The keys `tokenizer.ggml.*`, with checks of their types."""

    def __init__(self, file: GgufFile) -> None:
        self.path = file.path
        self._metadata = file.metadata
        self.kind = self.get("model", str, None)
        self.pre = self.get("pre", str, "default")
        self.tokens = self._list("tokens", str)
        self.types = self._list("token_type", int)
        self.merges = self._list("merges", str)
        self.scores = self._list("scores", float)
        if not self.tokens:
            self._refuse("has no `tokenizer.ggml.tokens`")
        if len(set(self.tokens)) != len(self.tokens):
            self._refuse("has two tokens of one spelling")
        for name in ("types", "scores"):
            if getattr(self, name) and len(getattr(self, name)) != len(self.tokens):
                self._refuse(f"has {len(self.tokens)} tokens, but another number of {name}")
        self.types = self.types or [1] * len(self.tokens)

    def _refuse(self, what: str) -> None:
        raise UserError(
            f"{self.path} {what}, so its tokenizer cannot be rebuilt.",
            instead="Use a GGUF file that llama.cpp's convert_hf_to_gguf.py wrote.",
        )

    def get(self, key: str, kind: type, default: Any) -> Any:
        value = self._metadata.get(f"tokenizer.ggml.{key}", default)
        if value is not None and type(value) is not kind:
            self._refuse(f"has `tokenizer.ggml.{key}` = {str(value)[:60]!r}")
        return value

    def _list(self, key: str, kind: type) -> list[Any]:
        value = self.get(key, list, [])
        if any(type(item) is not kind for item in value):
            self._refuse(f"has `tokenizer.ggml.{key}` that is not a list of {kind.__name__}")
        return value

    def id(self, key: str) -> int | None:
        """A special id; None where it is absent."""
        value = self.get(key, int, None)
        if value is not None and not 0 <= value < len(self.tokens):
            self._refuse(f"has `tokenizer.ggml.{key}` = {value}, which is no token")
        return value

    def token(self, key: str) -> str | None:
        """The spelling of a special token; None where it is absent."""
        token_id = self.id(key)
        return None if token_id is None else self.tokens[token_id]


def _split_table() -> dict[str, str]:
    """`tokenizer.ggml.pre` -> the regular expression that cuts text before the merges."""
    from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

    return GGUF_PRE_TOKENIZER_SPLITS


def _byte_level(use_regex: bool) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": use_regex,
    }


def _pre_tokenizer(vocabulary: _Vocabulary) -> dict[str, Any]:
    pre = vocabulary.pre
    if pre in _GPT2_SPLIT:
        return _byte_level(use_regex=True)
    if pre in _DIGITS_THEN_GPT2:
        return {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Digits", "individual_digits": True},
                _byte_level(use_regex=True),
            ],
        }
    table = _split_table()
    if pre not in table:
        raise UserError(
            f"{vocabulary.path} splits text by the rule {pre[:60]!r} (`tokenizer.ggml.pre`), which"
            " is not known here, so its tokenizer cannot be rebuilt.",
            instead="Use the safetensors of the model, whose tokenizer.json has the rule.",
        )
    return {
        "type": "Sequence",
        "pretokenizers": [
            {
                "type": "Split",
                "pattern": {"Regex": table[pre]},
                "behavior": "Isolated",
                "invert": False,
            },
            _byte_level(use_regex=False),
        ],
    }


def _added(vocabulary: _Vocabulary) -> list[dict[str, Any]]:
    return [
        {
            "id": token_id,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": kind == _CONTROL,
        }
        for token_id, (token, kind) in enumerate(
            zip(vocabulary.tokens, vocabulary.types, strict=True)
        )
        if kind in (_CONTROL, _USER_DEFINED)
    ]


def _leading_token(vocabulary: _Vocabulary, token: str) -> dict[str, Any]:
    """A post-processor that puts `token` before every text."""
    token_id = vocabulary.tokens.index(token)
    single = [
        {"SpecialToken": {"id": token, "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
    ]
    second = [
        {"SpecialToken": {"id": token, "type_id": 1}},
        {"Sequence": {"id": "B", "type_id": 1}},
    ]
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, *second],
        "special_tokens": {token: {"id": token, "ids": [token_id], "tokens": [token]}},
    }


def _byte_level_bpe(vocabulary: _Vocabulary, add_bos: bool) -> dict[str, Any]:
    alphabet = set(byte_characters().values())
    merges = [merge.split(" ") for merge in vocabulary.merges]
    if not merges or any(len(merge) != 2 for merge in merges):
        raise UserError(
            f"{vocabulary.path} has no usable `tokenizer.ggml.merges`.",
            instead="Use a GGUF file that llama.cpp's convert_hf_to_gguf.py wrote.",
        )
    missing = [c for c in sorted(alphabet) if c not in set(vocabulary.tokens)]
    bos = vocabulary.token("bos_token_id")
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added(vocabulary),
        "normalizer": {"type": "NFC"} if vocabulary.pre.startswith("qwen") else None,
        "pre_tokenizer": _pre_tokenizer(vocabulary),
        "post_processor": _leading_token(vocabulary, bos) if add_bos and bos else None,
        "decoder": {
            "type": "ByteLevel",
            "add_prefix_space": True,
            "trim_offsets": True,
            "use_regex": True,
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            # A vocabulary that lacks bytes needs a token for them, or they vanish from a prompt.
            "unk_token": vocabulary.token("unknown_token_id") if missing else None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": vocabulary.pre in ("llama3", "llama-v3", "llama-bpe"),
            "vocab": {token: token_id for token_id, token in enumerate(vocabulary.tokens)},
            "merges": merges,
        },
    }


def _sentencepiece(vocabulary: _Vocabulary, architecture: str, add_bos: bool) -> dict[str, Any]:
    from transformers.integrations.gguf import convert_gguf_tokenizer

    if not vocabulary.scores and not vocabulary.merges:
        raise UserError(
            f"{vocabulary.path} has neither merges nor scores of its tokens.",
            instead="Use a GGUF file that llama.cpp's convert_hf_to_gguf.py wrote.",
        )
    parts: dict[str, Any] = {
        "tokenizer_type": vocabulary.kind,
        "pre_tokenizer_type": vocabulary.pre,
        "tokens": vocabulary.tokens,
        "token_type": vocabulary.types,
        "scores": vocabulary.scores,
    }
    if vocabulary.merges:
        parts["merges"] = vocabulary.merges
    tokenizer, _ = convert_gguf_tokenizer(architecture, parts)
    value = json.loads(tokenizer.to_str())
    bos = vocabulary.token("bos_token_id")
    if add_bos and bos:
        value["post_processor"] = _leading_token(vocabulary, bos)
    return value


def convert(file: GgufFile) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Rebuilds the tokenizer of a GGUF file.

    Returns:
        the contents of tokenizer.json, tokenizer_config.json and generation_config.json.

    Raises:
        UserError: no tokenizer, or one of a kind that cannot be rebuilt exactly.
    """
    vocabulary = _Vocabulary(file)
    kind = vocabulary.kind
    add_bos = vocabulary.get("add_bos_token", bool, kind in _SENTENCEPIECE)
    if kind == "gpt2":
        tokenizer = _byte_level_bpe(vocabulary, add_bos)
    elif kind in _SENTENCEPIECE:
        tokenizer = _sentencepiece(vocabulary, file.metadata["general.architecture"], add_bos)
    else:
        raise UserError(
            f"{file.path} has a tokenizer of the kind {str(kind)[:60]!r}, which cannot be rebuilt.",
            instead="Use the safetensors of the model.",
        )
    settings: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_bos_token": add_bos,
        "clean_up_tokenization_spaces": False,
    }
    for name, key in _SPECIAL.items():
        if vocabulary.token(key) is not None:
            settings[name] = vocabulary.token(key)
    template = file.metadata.get("tokenizer.chat_template")
    if isinstance(template, str) and template:
        settings["chat_template"] = template
    ends = [i for i in map(vocabulary.id, _END_IDS) if i is not None]
    generation = {
        "bos_token_id": vocabulary.id("bos_token_id"),
        "eos_token_id": list(dict.fromkeys(ends)) or None,
        "pad_token_id": vocabulary.id("padding_token_id"),
    }
    return tokenizer, settings, {k: v for k, v in generation.items() if v is not None}
