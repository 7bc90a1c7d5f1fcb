"""The tokenizer of a tiny checkpoint: bytes, special tokens and a few merges.

It has the model's vocabulary or `MAX_SIZE` tokens, whichever is less; it fits into 256 with up to
13 special tokens (bytes that UTF-8 never has are left out), and depends on its arguments alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rules_executorch.common.errors import UserError

MAX_SIZE = 288

_NEVER_IN_UTF8 = frozenset({0xC0, 0xC1, *range(0xF5, 0x100)})

_MERGES = (
    "t h", "i n", "e r", "a n", "o n", "e n", "a t", "o r", "e s", "r e", "o u", "i s", "i t",
    "a r", "a l", "o f", "in g", "th e", "an d", "Ġ t", "Ġ a", "Ġ s", "Ġ w", "Ġ o", "Ġ the",
    "s t", "e d", "l e", "a s", "v e", "l l", "o w", "u r", "r o", "c h", "i c", "Ġ of", "Ġ and",
    "Ġ in", "Ġ is", "w h", "Ġ b", "Ġ c", "Ġ m", "Ġ h",
)  # fmt: skip

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def byte_characters() -> dict[int, str]:
    """The printable character that byte-level BPE writes for each byte.

    Bytes that are printable in Latin-1 stand for themselves, the others for the characters from
    U+0100 on, in order (the scheme of GPT-2).
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {
        byte: chr(0x100 + index) for index, byte in enumerate(others)
    }


def _special_tokens(ids: Mapping[str, Any]) -> dict[int, str]:
    """Special tokens by id: the config's own ids, then the markers of the chat template."""
    placed: dict[int, str] = {}
    bos, pad, eos = ids.get("bos_id"), ids.get("pad_id"), list(ids.get("eos_ids") or ())
    for number, token_id in enumerate(eos):
        placed.setdefault(token_id, "<eos>" if number == 0 else f"<eos_{token_id}>")
    if bos is not None:
        placed.setdefault(bos, "<bos>")
    if pad is not None:
        placed.setdefault(pad, "<pad>")
    free = (i for i in range(MAX_SIZE) if i not in placed)
    wanted = [] if "<pad>" in placed.values() else ["<pad>"]
    for token in (*wanted, "<|im_start|>", "<|im_end|>"):
        placed[next(free)] = token
    return placed


def make(
    vocab_size: int, *, eos_ids: tuple[int, ...], bos_id: int | None, pad_id: int | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A byte-level BPE tokenizer with a chat template.

    Args:
        vocab_size: the model's; the tokenizer takes at most `MAX_SIZE` of it.
        eos_ids, bos_id, pad_id: the ids of the config's special tokens.

    Returns:
        the contents of tokenizer.json and tokenizer_config.json.

    Raises:
        UserError: the vocabulary is too small for all bytes, or a special id is outside of it.
    """
    size = min(vocab_size, MAX_SIZE)
    special = _special_tokens({"eos_ids": eos_ids, "bos_id": bos_id, "pad_id": pad_id})
    characters = byte_characters()
    plain = [characters[byte] for byte in range(256) if byte not in _NEVER_IN_UTF8]
    if len(plain) + len(special) > size or max(special) >= size:
        raise UserError(
            f"A tiny tokenizer needs {len(plain)} tokens for bytes and {len(special)} special ones"
            f" ({sorted(special)}), which a vocabulary of {size} has no room for.",
            instead="Set `vocab_size` in config.json to 256 or more, and keep the ids of special"
            " tokens small.",
        )
    merges = list(_MERGES[: size - len(plain) - len(special)])
    ordinary = iter([*plain, *("".join(merge.split(" ")) for merge in merges)])
    vocab: dict[str, int] = {}
    for token_id in range(len(special) + len(plain) + len(merges)):
        vocab[special[token_id] if token_id in special else next(ordinary)] = token_id
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": token_id,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for token_id, token in sorted(special.items())
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": True,
            "use_regex": True,
        },
        "post_processor": None,
        "decoder": {
            "type": "ByteLevel",
            "add_prefix_space": True,
            "trim_offsets": True,
            "use_regex": True,
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocab,
            "merges": [merge.split(" ") for merge in merges],
        },
    }
    settings: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": CHAT_TEMPLATE,
        "pad_token": next(t for t in special.values() if t == "<pad>"),
    }
    if eos_ids:
        settings["eos_token"] = special[eos_ids[0]]
    if bos_id is not None:
        settings["bos_token"] = special[bos_id]
    return tokenizer, settings


def to_bytes(value: dict[str, Any]) -> bytes:
    """The bytes of tokenizer.json: as `tokenizers` writes it, in the order that was built."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8")
