"""Whether the weights of a checkpoint fit the model that its config describes, and what is left."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from rules_executorch.checkpoint.architecture import empty_model, read_by_graph
from rules_executorch.checkpoint.conversion import ModelWeights
from rules_executorch.checkpoint.sharded import few
from rules_executorch.common.errors import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

    from rules_executorch.checkpoint.stored_weights import Weights

_ONE_REVISION = "Take config.json and all weights from one revision of the model."


@dataclasses.dataclass(frozen=True)
class Fit:
    """A model and the weights that fit it.

    Attributes:
        model: on `meta`.
        weights: by the names of the model.
        passed_over: the checkpoint's tensors that the model has no place for, sorted.
        untied: whether config.json ties an output head that the checkpoint has values of its own
            for, so that, as in transformers, it is not tied.
    """

    model: PreTrainedModel
    weights: ModelWeights
    passed_over: tuple[str, ...]
    untied: bool


def check_fit(stored: Weights, config: PreTrainedConfig, task: str) -> Fit:
    """Checks a checkpoint's tensors against the model; values are read of tied tensors only.

    Args:
        stored: the checkpoint.
        config: what its config.json says.
        task: a key of `TASKS`.

    Raises:
        UserError: a tensor that the output of the task depends on is missing, one has another
            shape than the model's, or none of them is the model's.
    """
    model = empty_model(config, task)
    weights = ModelWeights(stored, model)
    where = stored.where()
    if not weights.names():
        raise UserError(
            f"None of the {len(stored.names())} tensors in {where} is one of the model"
            f" {type(model).__name__} that config.json describes: {few(stored.names())}.",
            instead=_ONE_REVISION,
        )
    _check_shapes(model, weights)
    missing = _needed(model, task, weights.missing)
    if missing:
        raise UserError(
            f"{len(missing)} of the {len(model.state_dict())} tensors that the architecture of"
            f" config.json needs ({type(model).__name__}) are not in the weights ({where}):"
            f" {few(missing)}.",
            instead=f"{_ONE_REVISION} A head that the checkpoint was never trained for is missing"
            " too: write the task that it was made for.",
        )
    return Fit(model, weights, weights.passed_over, _untied(weights, model))


def _needed(model: PreTrainedModel, task: str, missing: tuple[str, ...]) -> list[str]:
    """Which of the missing tensors the output depends on; costs a trace where there are any."""
    if not missing:
        return []
    read = read_by_graph(model, task)
    return [name for name in missing if read is None or name in read]


def _check_shapes(model: PreTrainedModel, weights: ModelWeights) -> None:
    state = model.state_dict()
    wrong = [name for name in weights.names() if weights.shape(name) != tuple(state[name].shape)]
    if wrong:
        first = wrong[0]
        raise UserError(
            f"{len(wrong)} tensors have another shape than config.json asks for:"
            f" {', '.join(weights.origins(first)[:3])} in {weights.source(first)} is"
            f" {list(weights.shape(first))}, wanted {list(state[first].shape)}"
            f"{f'; also {few(wrong[1:])}' if wrong[1:] else ''}.",
            instead=_ONE_REVISION,
        )


def _untied(weights: ModelWeights, model: PreTrainedModel) -> bool:
    """Whether two tensors that the model ties are both there, with values of their own."""
    import torch

    here = set(weights.names())
    for name, source in (getattr(model, "all_tied_weights_keys", None) or {}).items():
        if name in here and source in here:
            value = weights.tensor(source)
            same = torch.equal(weights.tensor(name, value.dtype), value)
            weights.release(name)
            weights.release(source)
            if not same:
                return True
    return False
