"""What an export can be asked for by name: nothing here loads torch.

`bazel run //tools/tables:update` writes from it what the rules know in Starlark.
"""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

Dtype = Literal["auto", "float32", "float16", "bfloat16"]
"""Of parameters, cache and activations; `auto` is the checkpoint's."""
InputForm = Literal["input_ids", "inputs_embeds"]
Logits = Literal["last", "all"]
"""`last`: logits of the last position, (batch, 1, vocab); `all`: of every position."""

DTYPES, INPUT_FORMS, LOGITS = get_args(Dtype), get_args(InputForm), get_args(Logits)


@dataclasses.dataclass(frozen=True)
class Scheme:
    """One way to store the weights of linear layers.

    Attributes:
        name: as users write it: bits of activations (`da`: dynamic) and of weights.
        bits: of a weight.
        dynamic: whether activations are quantized to int8 when the program runs, per token.
        grouped: whether `group_size` weights of a row share a scale, rather than the whole row.
    """

    name: str
    bits: int
    dynamic: bool
    grouped: bool

    def says(self) -> str:
        """What becomes of the weights and of the inputs, in words."""
        scale = "in groups" if self.grouped else "one scale for a row"
        inputs = ", inputs quantized to 8 bits per token as the program runs"
        return f"{self.bits}-bit weights, {scale}{inputs if self.dynamic else ''}"


SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme("8da4w", bits=4, dynamic=True, grouped=True),
        Scheme("8da8w", bits=8, dynamic=True, grouped=False),
        Scheme("4w", bits=4, dynamic=False, grouped=True),
        Scheme("8w", bits=8, dynamic=False, grouped=False),
    )
}

OTHER_SCHEMES = {
    "fpa4w": "is for ExecuTorch's Metal backend alone, which lowers on macOS only and is none of "
    "the backends here",
}
"""Schemes of torchao that no backend here has kernels for, and why."""

EMBEDDING_SCHEMES = {name: SCHEMES[name] for name in ("4w", "8w")}

CUSTOM_KV_CACHE, CUSTOM_SDPA = "custom_kv_cache", "custom_sdpa"
CUSTOM_KERNELS = {
    CUSTOM_KV_CACHE: "llama::update_cache.out",
    CUSTOM_SDPA: "llama::custom_sdpa.out",
}
"""ExecuTorch's own operators in place of torch's, to the kernel of each as the runtime names it."""
