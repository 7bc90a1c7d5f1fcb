"""Models of transformers from a config alone: memory that is never touched, then weights.

A graph depends on the config and not on the values of the parameters. So a model for export gets
parameters that are reserved and never written (the operating system gives them no pages), while
its buffers, which the graph does read, are computed as usual.

Rests on `transformers.initialization.no_init_weights` and on `torch.utils.deterministic`, which
would otherwise fill uninitialized memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Literal

import torch

from rules_executorch.common.errors import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

    from rules_executorch.checkpoint.stored_weights import Weights

Dtype = Literal["float32", "float16", "bfloat16"]

DTYPES: dict[Dtype, torch.dtype] = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}

PREFIX = "model."
"""What an adapter puts before the name of each of the model's tensors."""


@contextlib.contextmanager
def untouched_memory() -> Iterator[None]:
    """Within it, new parameters and empty tensors are reserved and never written."""
    from transformers.initialization import no_init_weights

    filled = torch.utils.deterministic.fill_uninitialized_memory
    torch.utils.deterministic.fill_uninitialized_memory = False
    try:
        with no_init_weights():
            yield
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = filled


def resolve_dtype(config: PreTrainedConfig, dtype: Dtype | Literal["auto"]) -> Dtype:
    """Gives the dtype of a program: `dtype`, or for `auto` the one that the config names.

    Raises:
        UserError: `auto`, and the config names no dtype a program can have.
    """
    if dtype != "auto":
        return dtype
    named = getattr(config, "dtype", None)
    name = str(named).removeprefix("torch.")
    if name not in DTYPES:
        raise UserError(
            f'dtype = "auto" takes the dtype from config.json, which says {name!r}.',
            instead=f"Write dtype = one of {', '.join(DTYPES)}.",
        )
    return name


def model_class(config: PreTrainedConfig) -> type[PreTrainedModel] | None:
    """The class that transformers has for text generation with this config, if it has one."""
    from transformers import AutoModelForCausalLM

    mapping = AutoModelForCausalLM._model_mapping
    if type(config) not in mapping:
        return None
    found = mapping[type(config)]
    return found[0] if isinstance(found, tuple) else found


def build_model(config: PreTrainedConfig, dtype: Dtype) -> PreTrainedModel:
    """Builds a model for text generation whose parameters have a shape and no values.

    Args:
        config: the config of the checkpoint; nothing else of it is read.
        dtype: of parameters and activations.

    Returns:
        The model in evaluation mode, ties kept, gradients off; attention is
        `scaled_dot_product_attention` where the model has it. Buffers hold their real values.

    Raises:
        UserError: transformers has no model for text generation of this type.
    """
    from transformers import AutoModelForCausalLM

    kind = model_class(config)
    if kind is None:
        raise UserError(
            f"Models of type {config.model_type!r} are not models for text generation in the "
            "transformers version of the toolchain.",
            instead="Choose a decoder-only checkpoint, such as Llama, Qwen or Gemma.",
        )
    attention = "sdpa" if kind._supports_sdpa else "eager"
    with untouched_memory():
        model = AutoModelForCausalLM.from_config(
            config, dtype=DTYPES[dtype], attn_implementation=attention
        )
    model.tie_weights()
    return model.requires_grad_(False).eval()


def ties(model: torch.nn.Module) -> dict[str, str]:
    """Names of parameters that share memory with another, and the name of that one.

    The one kept is the first in the model's own order, so an output head names the embedding.
    """
    first: dict[int, str] = {}
    shared = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        kept = first.setdefault(id(parameter), name)
        if kept != name:
            shared[name] = kept
    return shared


def wanted_tensors(model: torch.nn.Module) -> dict[str, tuple[int, ...]]:
    """Name and shape of each tensor that a checkpoint has to give; tied names are left out."""
    shared = ties(model)
    return {
        name: tuple(tensor.shape)
        for name, tensor in model.state_dict(keep_vars=True).items()
        if name not in shared
    }


def load_weights(
    model: PreTrainedModel,
    weights: Weights,
    dtype: Dtype,
    read: Collection[str] | None = None,
) -> None:
    """Gives every parameter of a built model its values; ties stay ties.

    Args:
        model: from `build_model`.
        weights: the checkpoint.
        dtype: of the parameters; a tensor that already has it stays mapped, not copied.
        read: names of the tensors that a program reads; of others, the checkpoint may lack some.

    Raises:
        UserError: a parameter is missing or has another shape.
    """
    wanted, shared = wanted_tensors(model), ties(model)
    if read is not None:
        read = {*read, *(shared.get(name, name) for name in read)}
        here = {shared.get(name, name) for name in weights.names()}
        wanted = {name: shape for name, shape in wanted.items() if name in read or name in here}
    found = weights.resolve(wanted, tied=shared)
    tensors = model.state_dict(keep_vars=True)
    for name in wanted:
        # A counter, such as that of a batch norm, is an integer in a model of any dtype.
        kept = DTYPES[dtype] if tensors[name].is_floating_point() else tensors[name].dtype
        tensors[name].data = weights.tensor(found[name]).to(kept)
