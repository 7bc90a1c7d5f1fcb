"""Tokenizer files of a checkpoint, read as data: no tokenizer is built."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, Final

from rules_executorch.checkpoint import strict_json
from rules_executorch.checkpoint.description import TokenizerDescription
from rules_executorch.common.errors import UserError

_MAX_TOKENIZER_BYTES = 256_000_000
_MAX_TEMPLATE_BYTES = 1_000_000
_MAX_ID = 2**31 - 1

KIND: Final = "tokenizer.json"
"""The kind of tokenizer that is read here: the file of Hugging Face's `tokenizers`."""


@dataclasses.dataclass(frozen=True)
class TokenizerFile:
    """What of a tokenizer.json matters beside the tokenizer itself."""

    ids: dict[int, str]
    """Every token by its id, as tokenizer.json spells it."""
    special: dict[int, str]
    """The added tokens that are marked special, by their id."""

    @property
    def vocab_size(self) -> int:
        """One more than the highest id."""
        return max(self.ids) + 1


def _check_id(token_id: Any, path: str) -> int:
    if type(token_id) is not int or not 0 <= token_id <= _MAX_ID:
        raise UserError(
            f"{path} has the token id {str(token_id)[:60]!r}, which is not a whole number from 0.",
            instead="Fetch tokenizer.json again from the model's repository.",
        )
    return token_id


def from_json(value: Mapping[str, Any], path: str) -> TokenizerFile:
    """Reads the tokens of a parsed tokenizer.json; `path` is how messages call it.

    Raises:
        UserError: no vocabulary, or ids that are not whole numbers from 0.
    """
    model = value.get("model")
    vocab = model.get("vocab") if isinstance(model, dict) else None
    ids: dict[int, str] = {}
    if isinstance(vocab, dict):
        ids = {_check_id(token_id, path): token for token, token_id in vocab.items()}
    elif isinstance(vocab, list):
        # A Unigram model lists [token, score] pairs; the place in the list is the id.
        ids = {
            number: str(pair[0]) if isinstance(pair, list) and pair else ""
            for number, pair in enumerate(vocab)
        }
    added = value.get("added_tokens") or []
    if not isinstance(added, list) or not all(isinstance(token, dict) for token in added):
        raise UserError(
            f"`added_tokens` of {path} is not a list of objects.",
            instead="Fetch tokenizer.json again from the model's repository.",
        )
    special: dict[int, str] = {}
    for token in added:
        token_id = _check_id(token.get("id"), path)
        ids[token_id] = str(token.get("content", ""))
        if token.get("special"):
            special[token_id] = ids[token_id]
    if not ids:
        raise UserError(
            f"{path} has no vocabulary.",
            instead="Use the tokenizer.json that `save_pretrained` of a fast tokenizer writes.",
        )
    return TokenizerFile(ids, special)


def read(path: str) -> TokenizerFile:
    """Reads the tokens of a tokenizer.json.

    Raises:
        UserError: not JSON, or see `from_json`.
    """
    return from_json(strict_json.read_object(path, limit=_MAX_TOKENIZER_BYTES), path)


def read_settings(path: str | None) -> dict[str, Any]:
    """A tokenizer_config.json as plain data; empty where there is none.

    Raises:
        UserError: not a JSON object.
    """
    if path is None:
        return {}
    return strict_json.read_object(path, limit=_MAX_TOKENIZER_BYTES, allow_infinity=True)


def chat_template(settings: Mapping[str, Any], template_path: str | None) -> str | None:
    """The chat template of a checkpoint.

    Args:
        settings: tokenizer_config.json as data.
        template_path: chat_template.jinja, which wins.

    Returns:
        The Jinja source, or None where there is none. Of several named templates, `default`.

    Raises:
        UserError: the file is not UTF-8 text, or too long.
    """
    if template_path is not None:
        with open(template_path, "rb") as file:
            size = min(os.fstat(file.fileno()).st_size, _MAX_TEMPLATE_BYTES)
            data = file.read(size + 1)
        try:
            if len(data) > _MAX_TEMPLATE_BYTES:
                raise ValueError(f"it is longer than {_MAX_TEMPLATE_BYTES:,} bytes")
            return data.decode("utf-8")
        except ValueError as error:
            raise UserError(
                f"The chat template {template_path} is not readable as text: {error}.",
                instead="Fetch it again from the model's repository.",
            ) from error
    template = settings.get("chat_template")
    if isinstance(template, list):
        named = {t.get("name"): t.get("template") for t in template if isinstance(t, dict)}
        template = named.get("default")
    return template if isinstance(template, str) and template else None


def describe(
    tokenizer_path: str | None,
    settings_path: str | None,
    template_path: str | None,
    sentencepiece_path: str | None = None,
) -> TokenizerDescription:
    """The tokenizer's part of model.json.

    Raises:
        UserError: see `read`, `read_settings` and `chat_template`; or the tokenizer is there as a
            model of SentencePiece alone.
    """
    if tokenizer_path is None and sentencepiece_path is not None:
        raise UserError(
            f"The tokenizer is there as {sentencepiece_path} alone, a model of SentencePiece, and"
            " how it is to be read depends on the architecture.",
            instead="Write a tokenizer.json once, where transformers, sentencepiece and protobuf"
            ' are installed, and add it to `srcs` of the hf_model: python -c "import transformers'
            " as t; t.AutoTokenizer.from_pretrained('FOLDER').save_pretrained('FOLDER')\". A model"
            " that needs no tokenizer is built without the file.",
        )
    template = chat_template(read_settings(settings_path), template_path)
    if tokenizer_path is None:
        return TokenizerDescription(None, None, template is not None)
    return TokenizerDescription(KIND, read(tokenizer_path).vocab_size, template is not None)
