"""Whole models as GGUF, written by the `gguf` package, for the tests."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

from rules_executorch.checkpoint import tiny_tokenizer

HIDDEN, INNER, HEADS, GROUPS, VOCAB, HEAD_DIM = 256, 512, 4, 2, 288, 64

_NORMS = {
    "llama": ["attn_norm", "ffn_norm"],
    "qwen2": ["attn_norm", "ffn_norm"],
    "qwen3": ["attn_norm", "ffn_norm"],
    "gemma3": ["attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"],
}


def shapes(architecture: str, layers: int, tied: bool) -> dict[str, tuple[int, ...]]:
    """Shapes of all tensors, in torch's order."""
    found: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (VOCAB, HIDDEN),
        "output_norm.weight": (HIDDEN,),
    }
    if not tied:
        found["output.weight"] = (VOCAB, HIDDEN)
    for layer in range(layers):
        block = {
            "attn_q": (HEADS * HEAD_DIM, HIDDEN),
            "attn_k": (GROUPS * HEAD_DIM, HIDDEN),
            "attn_v": (GROUPS * HEAD_DIM, HIDDEN),
            "attn_output": (HIDDEN, HEADS * HEAD_DIM),
            "ffn_gate": (INNER, HIDDEN),
            "ffn_up": (INNER, HIDDEN),
            "ffn_down": (HIDDEN, INNER),
        }
        block |= dict.fromkeys(_NORMS[architecture], (HIDDEN,))
        if architecture in ("qwen3", "gemma3"):
            block |= {"attn_q_norm": (HEAD_DIM,), "attn_k_norm": (HEAD_DIM,)}
        found |= {f"blk.{layer}.{name}.weight": shape for name, shape in block.items()}
        if architecture == "qwen2":
            for name in ("attn_q", "attn_k", "attn_v"):
                found[f"blk.{layer}.{name}.bias"] = (block[name][0],)
    return found


def packed(shape: tuple[int, ...], kind: str, random: np.random.Generator) -> np.ndarray:
    """Random data of a ggml type: quantized by the package, or any bytes where it cannot."""
    quant = gguf.GGMLQuantizationType[kind]
    values = random.standard_normal(shape, dtype=np.float32)
    if len(shape) == 1:
        return values
    try:
        return gguf.quants.quantize(values, quant)
    except NotImplementedError:
        elements, size = gguf.GGML_QUANT_SIZES[quant]
        row = shape[1] // elements * size
        # Bytes below 0x3c make every half-precision scale among them finite.
        return random.integers(0, 0x3C, (shape[0], row), dtype=np.uint8)


def write(
    path: Path,
    architecture: str = "llama",
    kind: str = "Q8_0",
    *,
    layers: int = 2,
    tied: bool = True,
    keys: dict | None = None,
    extra: dict[str, np.ndarray] | None = None,
    tokenizer: dict | None = None,
    drop: tuple[str, ...] = (),
) -> Path:
    """Writes a model with random weights and a byte-level tokenizer."""
    writer = gguf.GGUFWriter(str(path), architecture)
    writer.add_name("tiny")
    writer.add_license("apache-2.0")
    sizes = {
        "context_length": 128,
        "embedding_length": HIDDEN,
        "block_count": layers,
        "feed_forward_length": INNER,
        "attention.head_count": HEADS,
        "attention.head_count_kv": GROUPS,
        "rope.dimension_count": HEAD_DIM,
        "vocab_size": VOCAB,
    }
    if architecture == "gemma3":
        sizes |= {"attention.key_length": HEAD_DIM, "attention.value_length": HEAD_DIM}
        sizes |= {"attention.sliding_window": 16}
    for key, value in (sizes | (keys or {})).items():
        if value is None:
            continue
        if isinstance(value, str):
            writer.add_string(f"{architecture}.{key}", value)
        elif isinstance(value, float):
            writer.add_float32(f"{architecture}.{key}", value)
        elif isinstance(value, list):
            writer.add_array(f"{architecture}.{key}", value)
        else:
            writer.add_uint32(f"{architecture}.{key}", value)
    writer.add_float32(f"{architecture}.rope.freq_base", 50_000.0)
    writer.add_float32(f"{architecture}.attention.layer_norm_rms_epsilon", 1e-5)
    _add_tokenizer(writer, tokenizer or {})
    random = np.random.default_rng(7)
    for name, shape in shapes(architecture, layers, tied).items():
        if name not in drop:
            data = packed(shape, kind, random)
            quant = gguf.GGMLQuantizationType[kind] if data.dtype == np.uint8 else None
            writer.add_tensor(name, data, raw_dtype=quant)
    for name, value in (extra or {}).items():
        writer.add_tensor(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_tokenizer(writer: gguf.GGUFWriter, changes: dict) -> None:
    value, settings = tiny_tokenizer.make(VOCAB, eos_ids=(2, 4), bos_id=1, pad_id=0)
    special = {token["id"] for token in value["added_tokens"]}
    vocab = sorted(value["model"]["vocab"], key=value["model"]["vocab"].__getitem__)
    keys = {
        "model": "gpt2",
        "pre": "smollm",
        "tokens": vocab,
        "token_type": [3 if i in special else 1 for i in range(len(vocab))],
        "merges": [" ".join(merge) for merge in value["model"]["merges"]],
        "bos_token_id": 1,
        "eos_token_id": 2,
        "eot_token_id": 4,
        "padding_token_id": 0,
        "add_bos_token": False,
    } | changes
    for key, content in keys.items():
        name = f"tokenizer.ggml.{key}"
        if content is None:
            continue
        if isinstance(content, bool):
            writer.add_bool(name, content)
        elif isinstance(content, int):
            writer.add_uint32(name, content)
        elif isinstance(content, str):
            writer.add_string(name, content)
        else:
            writer.add_array(name, content)
    writer.add_string("tokenizer.chat_template", settings["chat_template"])
