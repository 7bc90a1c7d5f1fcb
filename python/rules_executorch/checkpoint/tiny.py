"""Random checkpoints for tests: seeded, the same on every machine, and not degenerate.

Values come from the raw 64-bit output of numpy's Philox counter generator, keyed by the seed and
the tensor's name, and become uniform numbers by exact arithmetic: no distribution code, vector
width, thread count or order of tensors can change a bit.

The scales keep what a test looks at well above rounding noise: attention scores vary with the
tokens, each layer adds about as much as its input, and logits have a spread of order one, so the
best token is ahead of the second by far more than float32 rounding.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

from rules_executorch.checkpoint.tasks import GENERATION, TASKS
from rules_executorch.common import dtypes
from rules_executorch.common.errors import UserError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel

MAX_PARAMETERS = 50_000_000
"""More than this is not a tiny model."""

# A tied head favours the token just read, by the square of this; small keeps other tokens ahead.
_TIED_EMBEDDING_SCALE = 0.03
_HEAD_SCALE = 0.5
_VECTOR_SCALE = 0.1


def uniform(seed: int, name: str, shape: tuple[int, ...], scale: float) -> torch.Tensor:
    """Uniform float32 numbers of mean 0 and standard deviation `scale`."""
    import numpy as np
    import torch

    key = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    generator = np.random.Philox(key=np.frombuffer(key[:16], dtype="<u8"))
    raw = generator.random_raw(math.prod(shape)) >> np.uint64(40)
    centred = raw.astype(np.float64) * 2.0**-23 - 1.0
    values = (centred * (scale * math.sqrt(3.0))).astype(np.float32)
    return torch.from_numpy(values.reshape(shape))


def _scale(name: str, shape: tuple[int, ...], tied: bool, is_embedding: bool) -> float:
    if len(shape) < 2:
        return _VECTOR_SCALE
    if is_embedding:
        return _TIED_EMBEDDING_SCALE if tied else 1.0
    if name.startswith("lm_head."):
        return _HEAD_SCALE
    return 1.0 / math.sqrt(math.prod(shape[1:]))


def make(
    config: PreTrainedConfig, seed: int, dtype: str | None, task: str = GENERATION
) -> dict[str, torch.Tensor]:
    """Weights for a config, by transformers' state-dict names; a tied head is left out.

    Args:
        config: the configuration of a model.
        seed: any whole number.
        dtype: torch's name; None takes the config's, or float32.
        task: what the model is for.

    Raises:
        UserError: a dtype that parameters cannot have, or a model that is not tiny.
    """
    import torch
    import transformers

    kind = getattr(transformers, TASKS[task].auto_class)
    dtype = dtype or str(config.dtype or "float32").removeprefix("torch.")
    if dtype not in dtypes.FLOATING:
        raise UserError(
            f"The weights of a model cannot be {dtype!r}.",
            instead=f"Write one of {', '.join(dtypes.FLOATING)}.",
        )
    with torch.device("meta"):
        count = sum(p.numel() for p in kind.from_config(config).parameters())
    if count > MAX_PARAMETERS:
        raise UserError(
            f"The config describes {count:,} parameters; a tiny checkpoint has at most"
            f" {MAX_PARAMETERS:,}.",
            instead="Reduce the layers, the hidden size or the vocabulary.",
        )
    model = kind.from_config(config, dtype=torch.float32)
    embedding, tied = _embedding(model) if task == GENERATION else (None, False)
    shared: set[int] = set()
    weights: dict[str, torch.Tensor] = {}
    for name, parameter in model.named_parameters(remove_duplicate=True):
        if id(parameter) in shared:
            continue
        shared.add(id(parameter))
        shape = tuple(parameter.shape)
        scale = _scale(name, shape, tied, parameter is embedding)
        value = uniform(seed, name, shape, scale)
        if len(shape) < 2:
            # A norm's neutral value is 1 in most architectures and 0 in some.
            value += parameter.detach().mean().round()
        weights[name] = value.to(dtypes.torch_dtype(dtype))
    for name, buffer in model.named_buffers():
        if name in model.state_dict():
            weights[name] = buffer.detach().clone()
    return weights


def _embedding(model: PreTrainedModel) -> tuple[torch.nn.Parameter, bool]:
    """The embedding, and whether the output head is it."""
    embedding = model.get_input_embeddings().weight
    return embedding, model.get_output_embeddings().weight is embedding


def split(weights: dict[str, torch.Tensor], shards: int) -> list[dict[str, torch.Tensor]]:
    """Splits weights into shards of about equal size, in the order of names.

    Raises:
        UserError: fewer tensors than shards.
    """
    names = sorted(weights)
    if not 1 <= shards <= len(names):
        raise UserError(
            f"{len(names)} tensors cannot make {shards} shards.",
            instead=f"Write a number of shards from 1 to {len(names)}.",
        )
    total = sum(weights[name].nbytes for name in names)
    parts: list[dict[str, torch.Tensor]] = [{}]
    done = 0
    for position, name in enumerate(names):
        left = len(names) - position
        if (
            parts[-1]
            and len(parts) < shards
            and (done >= total * len(parts) / shards or left <= shards - len(parts))
        ):
            parts.append({})
        parts[-1][name] = weights[name]
        done += weights[name].nbytes
    return parts
