"""A model of transformers without memory: what a checkpoint has to fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rules_executorch.checkpoint.tasks import TASKS
from rules_executorch.common.errors import UserError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel


def model_class(config: PreTrainedConfig, task: str) -> type[PreTrainedModel]:
    """The class that transformers has for a task and a config.

    Raises:
        UserError: there is none.
    """
    import transformers

    mapping = getattr(transformers, TASKS[task].auto_class)._model_mapping
    if type(config) not in mapping:
        raise UserError(
            f"transformers has no {TASKS[task].made} of the type {config.model_type!r}.",
            instead="Write the task that the checkpoint was made for.",
        )
    found = mapping[type(config)]
    if not isinstance(found, tuple):
        return found
    # Of several classes for one config, the one that config.json names, as transformers does.
    named = getattr(config, "architectures", None) or []
    return next((kind for kind in found if kind.__name__ in named), found[0])


def empty_model(config: PreTrainedConfig, task: str) -> PreTrainedModel:
    """Builds a model whose tensors, on the device `meta`, have a shape and no memory.

    Args:
        config: the config of the checkpoint; nothing else of it is read.
        task: a key of `TASKS`.

    Returns:
        The model in evaluation mode, ties kept.

    Raises:
        UserError: transformers has no such model, or its class refuses the config.
    """
    import torch
    from transformers import initialization

    kind = model_class(config, task)
    try:
        with (
            torch.device("meta"),
            initialization.no_init_weights(),
            initialization.meta_device_safe_creation_ops(),
        ):
            model = kind._from_config(config, attn_implementation="eager")
    except Exception as error:
        # The constructors check values as they like, and miss packages as they like.
        raise UserError(
            f"transformers cannot make a {TASKS[task].made} of the type {config.model_type!r} from"
            f" this config.json: {' '.join(str(error).split())[:500]}",
            instead="Use the config.json of the model's repository, unchanged.",
        ) from error
    model.tie_weights()
    return model.eval()


def positions_after_padding(model: torch.nn.Module) -> int:
    """How many rows of the table of positions no token of a text can have.

    RoBERTa and its kin count positions from the one after the padding token's id, so that of 514
    rows 512 are used.
    """
    import torch

    for name, module in model.named_modules():
        table = name.rpartition(".")[2]
        if "position" in table and isinstance(module, torch.nn.Embedding):
            return 0 if module.padding_idx is None else module.padding_idx + 1
    return 0


def read_by_graph(model: PreTrainedModel, task: str) -> frozenset[str] | None:
    """The names of the tensors on which the output of a task depends.

    The model is traced on `meta`, and what the output does not need is dropped, as an export does.

    Args:
        model: from `empty_model`.
        task: a key of `TASKS`.

    Returns:
        Names of its state dict, of tied ones any; or None where it cannot be traced so.
    """
    import torch

    # Some operators take only bfloat16 on `meta`; some masks are looked at, and on `meta` there is
    # nothing to see; some models want one all the same.
    for dtype, masked in ((torch.bfloat16, False), (torch.float32, True)):
        try:
            return _trace(model, task, dtype, masked)
        except Exception:
            # A model is any code, and ends in any exception where it finds no values.
            continue
    return None


def _trace(model: PreTrainedModel, task: str, dtype: torch.dtype, masked: bool) -> frozenset[str]:
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx

    inputs = _example_inputs(model, dtype, masked)
    outputs = TASKS[task].outputs
    tensors = {
        name: tensor.detach().to(dtype) if tensor.is_floating_point() else tensor
        for name, tensor in (*model.named_parameters(), *model.named_buffers())
    }

    def run(*values: torch.Tensor) -> Any:
        state = dict(zip(tensors, values, strict=True))
        arguments = {**inputs, "return_dict": True}
        found = torch.func.functional_call(model, state, kwargs=arguments)
        return tuple(found[name] for name in outputs if found.get(name) is not None)

    with torch.no_grad():
        traced = make_fx(run)(*tensors.values())
    traced.graph.eliminate_dead_code()
    places = [node for node in traced.graph.nodes if node.op == "placeholder"]
    return frozenset(name for name, node in zip(tensors, places, strict=True) if node.users)


def _example_inputs(
    model: PreTrainedModel, dtype: torch.dtype, masked: bool
) -> dict[str, torch.Tensor]:
    import torch

    config, kind = model.config, model.main_input_name
    if kind == "input_ids":
        ids = torch.zeros((1, 8), dtype=torch.int64, device="meta")
        return {kind: ids, "attention_mask": torch.ones_like(ids)} if masked else {kind: ids}
    if kind == "pixel_values":
        size = getattr(config, "image_size", None) or 224
        height, width = size if isinstance(size, list | tuple) else (size, size)
        shape: tuple[int, ...] = (1, getattr(config, "num_channels", None) or 3, height, width)
    elif kind == "input_values":
        shape = (1, 16_000)
    else:
        raise ValueError(f"{type(model).__name__} takes {kind}")
    return {kind: torch.zeros(shape, dtype=dtype, device="meta")}
