"""The tokenizer.json for the C++ runner, and the way back from its pieces to text.

The C++ runner passes each token to a callback as text, which in Python has to be valid UTF-8; a
token of byte-level BPE is often half a character. So the runner gets the checkpoint's
tokenizer.json without its `decoder`: it encodes as in an app, and each piece is the token's entry
in the vocabulary, which gives its id. The `tokenizers` library then decodes the ids.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rules_executorch.checkpoint import strict_json, tokenizer
from rules_executorch.common.files import whole_file

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_MAX_PENDING = 8
"""Tokens that may wait for the rest of a character; one has at most four bytes."""


class RunnerTokenizer:
    """A checkpoint's tokenizer as the runner needs it."""

    def __init__(self, path: str, model_vocab_size: int | None) -> None:
        """Reads a tokenizer.json.

        Args:
            path: tokenizer.json.
            model_vocab_size: rows of the model's embedding. Ids that only the model has get a
                spelling of their own, so that the runner does not fail on one.

        Raises:
            UserError: not a readable tokenizer.json.
        """
        from tokenizers import Tokenizer

        self.path = path
        self._json: dict[str, Any] = strict_json.read_object(path, limit=256_000_000)
        file = tokenizer.from_json(self._json, path)
        self.special = frozenset(file.special)
        self.vocab_size = file.vocab_size
        self.reference: Tokenizer = Tokenizer.from_file(path)
        known = range(model_vocab_size or 0)
        self.unknown = {i: f"<|no token {i}|>" for i in known if i not in file.ids}
        self._ids = {text: i for i, text in file.ids.items()}
        self._ids |= {text: i for i, text in self.unknown.items()}

    def write(self, path: str) -> None:
        """Writes the runner's tokenizer.json."""
        value = dict(self._json)
        value.pop("decoder", None)
        value["added_tokens"] = [
            *(value.get("added_tokens") or []),
            *(_added_token(i, text) for i, text in self.unknown.items()),
        ]
        with whole_file(path) as part, open(part, "w", encoding="utf-8") as file:
            json.dump(value, file, ensure_ascii=False)

    def id_of(self, piece: str) -> int | None:
        """The id of a piece that the runner gave, or None for a piece that is no token."""
        return self._ids.get(piece)

    def encode(self, prompt: str, *, add_special_tokens: bool) -> list[int]:
        """Ids of a prompt by the `tokenizers` library."""
        return self.reference.encode(prompt, add_special_tokens=add_special_tokens).ids

    def with_leading_tokens(self, prompt: str) -> str:
        """The prompt with the special tokens that the tokenizer puts before every text."""
        plain = self.encode(prompt, add_special_tokens=False)
        whole = self.encode(prompt, add_special_tokens=True)
        for start in range(len(whole) - len(plain) + 1):
            if whole[start : start + len(plain)] == plain:
                tokens = (self.reference.id_to_token(i) for i in whole[:start])
                return "".join(token or "" for token in tokens) + prompt
        return prompt


def _added_token(token_id: int, content: str) -> dict[str, Any]:
    return {
        "id": token_id,
        "content": content,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }


class TextStream:
    """Text of a growing list of ids, as far as later ids cannot change it."""

    def __init__(self, reference: Tokenizer) -> None:
        self._reference = reference
        self._ids: list[int] = []
        self._shown = 0
        """Ids whose text is out."""
        self._context = 0
        """Where decoding starts: a decoder may treat the first token of a text differently."""

    def _decode(self, ids: list[int]) -> str:
        return self._reference.decode(ids, skip_special_tokens=True)

    def push(self, token_id: int) -> str:
        """Adds a token; gives the text that is certain now, which may be none."""
        self._ids.append(token_id)
        text = self._new_text()
        pending = len(self._ids) - self._shown
        if not text or (text.endswith("\ufffd") and pending < _MAX_PENDING):
            return ""
        return self._advance(text)

    def finish(self) -> str:
        """The rest, with a replacement character for an incomplete one."""
        return self._advance(self._new_text())

    def _new_text(self) -> str:
        before = self._decode(self._ids[self._context : self._shown])
        return self._decode(self._ids[self._context :])[len(before) :]

    def _advance(self, text: str) -> str:
        self._context, self._shown = self._shown, len(self._ids)
        return text
