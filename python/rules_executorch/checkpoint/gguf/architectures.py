"""What llama.cpp's converter does to a model, undone: names, layouts and config.json.

Only architectures whose conversion is known in full are here; any other is refused, because a
wrong guess gives a model that runs and talks nonsense. The names are those of llama.cpp's
`gguf-py/gguf/constants.py`, the changes of values those of its `convert_hf_to_gguf.py`.
"""

from __future__ import annotations

import dataclasses
import math
import re
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rules_executorch.checkpoint.gguf.header import GgufFile
from rules_executorch.common.errors import UserError

if TYPE_CHECKING:
    import torch

_BLOCK = re.compile(r"blk\.(\d+)\.(.+)\.(weight|bias)")

_WHOLE = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_ATTENTION_AND_MLP = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_TWO_NORMS = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
_HEAD_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
_FOUR_NORMS = {
    "attn_norm": "input_layernorm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}

ROPE_FACTORS = "rope_freqs.weight"
"""A tensor of llama.cpp's converter: what Llama 3's rope scaling makes of each frequency."""


@dataclasses.dataclass(frozen=True)
class Architecture:
    """One architecture of GGUF, and its counterpart in transformers."""

    model_type: str
    architecture: str
    block: Mapping[str, str]
    """A layer's tensors: ggml name to transformers' name below the layer."""
    permuted_heads: bool = False
    """Rows of q and k are interleaved for ggml's rope."""
    norm_offset: int = 0
    """What the converter added to the weights of norms."""


ARCHITECTURES: Mapping[str, Architecture] = {
    "llama": Architecture(
        "llama", "LlamaForCausalLM", {**_ATTENTION_AND_MLP, **_TWO_NORMS}, permuted_heads=True
    ),
    "qwen2": Architecture("qwen2", "Qwen2ForCausalLM", {**_ATTENTION_AND_MLP, **_TWO_NORMS}),
    "qwen3": Architecture(
        "qwen3", "Qwen3ForCausalLM", {**_ATTENTION_AND_MLP, **_TWO_NORMS, **_HEAD_NORMS}
    ),
    "gemma3": Architecture(
        "gemma3_text",
        "Gemma3ForCausalLM",
        {**_ATTENTION_AND_MLP, **_FOUR_NORMS, **_HEAD_NORMS},
        norm_offset=1,
    ),
}


class Keys:
    """The keys of a GGUF header below its architecture's name, with checks of their types."""

    def __init__(self, file: GgufFile) -> None:
        """Finds the architecture.

        Raises:
            UserError: no architecture, or one that is not in `ARCHITECTURES`.
        """
        self.path = file.path
        self._metadata = file.metadata
        name = file.metadata.get("general.architecture")
        if not isinstance(name, str) or name not in ARCHITECTURES:
            raise UserError(
                f"{file.path} is of the architecture {str(name)[:60]!r}, for which the way back to"
                " transformers' names and layouts is not known here.",
                instead=f"Use the safetensors of the model, or one of {', '.join(ARCHITECTURES)}.",
            )
        self.name = name
        self.architecture = ARCHITECTURES[name]

    def get(self, key: str, kind: type, default: Any = None) -> Any:
        """The value of `ARCHITECTURE.key`; one value for all layers where it is an array.

        Raises:
            UserError: absent without a default, of another type, or different between layers.
        """
        full = f"{self.name}.{key}"
        value = self._metadata.get(full, default)
        if isinstance(value, list) and value and all(item == value[0] for item in value):
            value = value[0]
        if kind is float and type(value) is int:
            value = float(value)
        wrong = type(value) is not kind or (isinstance(value, float) and not 0 < value < math.inf)
        if value is not None and wrong:
            raise UserError(
                f"`{full}` in {self.path} is {str(value)[:60]!r}, and a single"
                f" {'positive ' if kind is float else ''}{kind.__name__} is wanted.",
                instead="Use the safetensors of the model.",
            )
        if value is None and default is None:
            raise UserError(
                f"{self.path} has no `{full}`.",
                instead="Use a GGUF file that llama.cpp's convert_hf_to_gguf.py wrote.",
            )
        return value

    def has(self, key: str) -> bool:
        """Whether `ARCHITECTURE.key` is there."""
        return f"{self.name}.{key}" in self._metadata


def names(file: GgufFile, keys: Keys) -> dict[str, str]:
    """transformers' name of each tensor -> its name in the file.

    Raises:
        UserError: a tensor that the architecture has no place for.
    """
    found: dict[str, str] = {}
    for name in file.tensors:
        if name == ROPE_FACTORS:
            continue
        whole, _, suffix = name.rpartition(".")
        block = _BLOCK.fullmatch(name)
        if whole in _WHOLE:
            found[f"{_WHOLE[whole]}.{suffix}"] = name
        elif block and block[2] in keys.architecture.block:
            found[f"model.layers.{block[1]}.{keys.architecture.block[block[2]]}.{block[3]}"] = name
        else:
            raise UserError(
                f"{file.path} has the tensor {name!r}, which the architecture {keys.name} has no"
                " place for in transformers.",
                instead="Use the safetensors of the model.",
            )
    return found


def restore(value: torch.Tensor, name: str, keys: Keys) -> torch.Tensor:
    """A dequantized tensor as transformers has it; `name` is ggml's."""
    architecture = keys.architecture
    if architecture.norm_offset and name.endswith("norm.weight"):
        value = value - architecture.norm_offset
    if architecture.permuted_heads and (".attn_q." in name or ".attn_k." in name):
        heads = keys.get("attention.head_count", int)
        if ".attn_k." in name:
            heads = keys.get("attention.head_count_kv", int, heads)
        pairs = value.reshape(heads, value.shape[0] // heads // 2, 2, *value.shape[1:])
        value = pairs.transpose(1, 2).reshape(value.shape)
    return value


def config(file: GgufFile, keys: Keys) -> dict[str, Any]:
    """The config.json of the model that the file was converted from.

    Raises:
        UserError: a value that is missing or that has no counterpart in transformers.
    """
    embedding = file.tensors.get("token_embd.weight")
    if embedding is None or len(embedding.shape) != 2:
        raise UserError(
            f"{file.path} has no embedding `token_embd.weight`.",
            instead="Use a GGUF file of a whole language model.",
        )
    if keys.get("expert_count", int, 0):
        raise UserError(
            f"{file.path} is a mixture of experts, whose tensors are not read from GGUF here.",
            instead="Use the safetensors of the model.",
        )
    heads = keys.get("attention.head_count", int)
    hidden = keys.get("embedding_length", int)
    for key, value in (("attention.head_count", heads), ("embedding_length", hidden)):
        if value < 1:
            raise UserError(
                f"`{keys.name}.{key}` in {file.path} is {value}.",
                instead="Use the safetensors of the model.",
            )
    rows = keys.get("rope.dimension_count", int, hidden // heads)
    head_dim = keys.get("attention.key_length", int, rows)
    if keys.get("attention.value_length", int, head_dim) != head_dim:
        raise UserError(
            f"Keys and values of {file.path} have heads of different sizes.",
            instead="Use the safetensors of the model.",
        )
    values: dict[str, Any] = {
        "architectures": [keys.architecture.architecture],
        "model_type": keys.architecture.model_type,
        "dtype": "float32",
        "vocab_size": embedding.shape[0],
        "hidden_size": hidden,
        "intermediate_size": keys.get("feed_forward_length", int),
        "num_hidden_layers": keys.get("block_count", int),
        "num_attention_heads": heads,
        "num_key_value_heads": keys.get("attention.head_count_kv", int, heads),
        "head_dim": head_dim,
        "max_position_embeddings": keys.get("context_length", int),
        "rms_norm_eps": keys.get("attention.layer_norm_rms_epsilon", float),
        "tie_word_embeddings": "output.weight" not in file.tensors,
    }
    rope = _rope(file, keys, head_dim)
    if keys.name == "gemma3":
        return values | _gemma3(keys, values, rope)
    values |= {"hidden_act": "silu", "rope_parameters": rope}
    if keys.name == "llama":
        values["attention_bias"] = "blk.0.attn_q.bias" in file.tensors
        values["mlp_bias"] = "blk.0.ffn_up.bias" in file.tensors
    if keys.name == "qwen2":
        # Qwen2's configuration has no head_dim; its attention divides the hidden size.
        del values["head_dim"]
    return values


def _gemma3(keys: Keys, values: Mapping[str, Any], rope: dict[str, Any]) -> dict[str, Any]:
    layers = values["num_hidden_layers"]
    # Five layers with a window, then one without: the pattern of every Gemma 3.
    pattern = keys.get("attention.sliding_window_pattern", int, 6)
    if not 1 <= pattern <= 64 or not 1 <= layers <= 4096:
        raise UserError(
            f"{keys.path} has {layers} layers with a full one every {pattern}.",
            instead="Use the safetensors of the model.",
        )
    head_dim = values["head_dim"]
    # The largest model scales queries by hidden size / heads, every other by the head's size.
    whole_heads = values["hidden_size"] // values["num_attention_heads"]
    scale = whole_heads if layers == 62 else head_dim
    return {
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": scale,
        "sliding_window": keys.get("attention.sliding_window", int),
        "layer_types": [
            "full_attention" if (layer + 1) % pattern == 0 else "sliding_attention"
            for layer in range(layers)
        ],
        "rope_parameters": {
            "full_attention": rope,
            "sliding_attention": {
                "rope_type": "default",
                "rope_theta": keys.get("rope.freq_base_swa", float, 10_000.0),
            },
        },
    }


def _rope(file: GgufFile, keys: Keys, head_dim: int) -> dict[str, Any]:
    base = keys.get("rope.freq_base", float, 1_000_000.0 if keys.name == "gemma3" else 10_000.0)
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": base}
    kind = file.metadata.get(f"{keys.name}.rope.scaling.type", "none")
    if kind == "linear":
        factor = keys.get("rope.scaling.factor", float)
        rope |= {"rope_type": "linear", "factor": factor}
    elif kind != "none":
        raise UserError(
            f"{file.path} scales its rope by {str(kind)[:60]!r}, which has no sure counterpart in"
            " config.json.",
            instead="Use the safetensors of the model.",
        )
    if ROPE_FACTORS in file.tensors:
        rope |= _llama3_scaling(file, base, head_dim)
    return rope


def _llama3_factors(base: float, head_dim: int, scaling: Mapping[str, Any]) -> list[float]:
    """What Llama 3's rope scaling divides each frequency by (`_compute_llama3_parameters`)."""
    factor, low, high = (scaling[key] for key in ("factor", "low_freq_factor", "high_freq_factor"))
    original = scaling["original_max_position_embeddings"]
    factors = []
    for pair in range(0, head_dim, 2):
        wavelength = 2 * math.pi * base ** (pair / head_dim)
        if wavelength < original / high:
            factors.append(1.0)
        elif wavelength > original / low:
            factors.append(factor)
        else:
            smooth = (original / wavelength - low) / (high - low)
            factors.append(1 / ((1 - smooth) / factor + smooth))
    return factors


def _llama3_scaling(file: GgufFile, base: float, head_dim: int) -> dict[str, Any]:
    """The parameters of Llama 3's rope scaling, recovered from the factors that they gave."""
    tensor = file.tensors[ROPE_FACTORS]
    count = head_dim // 2
    if tensor.type != 0 or tensor.shape != (count,):
        raise UserError(
            f"{ROPE_FACTORS} in {file.path} is not {count} float32 numbers.",
            instead="Use the safetensors of the model.",
        )
    factors = struct.unpack(f"<{count}f", file.data(ROPE_FACTORS))
    scaling = {
        "rope_type": "llama3",
        "factor": float(round(max(factors), 3)),
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    expected = _llama3_factors(base, head_dim, scaling)
    if not all(math.isclose(a, b, rel_tol=1e-4) for a, b in zip(factors, expected, strict=True)):
        raise UserError(
            f"{ROPE_FACTORS} in {file.path} are not the factors of Llama 3's rope scaling, and"
            " config.json has no place for others.",
            instead="Use the safetensors of the model.",
        )
    return scaling
