"""Models without a cache: one call takes everything and gives everything.

Images go in as `pixel_values`, texts as `input_ids` and `attention_mask`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rules_executorch.checkpoint.architecture import positions_after_padding
from rules_executorch.checkpoint.config import max_positions
from rules_executorch.checkpoint.tasks import TASKS
from rules_executorch.common.errors import UserError
from rules_executorch.export.build import DTYPES, untouched_memory

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

    from rules_executorch.export.options import ExportOptions

IMAGES, TEXTS = "pixel_values", "input_ids"


class _Plain(torch.nn.Module):
    """A model that returns one tensor of its result, the others left out of the graph."""

    def __init__(self, model: PreTrainedModel, output: str) -> None:
        super().__init__()
        self.model = model
        self._output = output

    def _run(self, **inputs: torch.Tensor) -> torch.Tensor:
        return getattr(self.model(**inputs, return_dict=True), self._output)


class PlainImages(_Plain):
    """Takes images."""

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        """Runs the model on (batch, channels, height, width)."""
        return self._run(pixel_values=pixel_values)


class PlainTexts(_Plain):
    """Takes texts."""

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Runs the model on token ids and a mask, both int64, (batch, sequence)."""
        return self._run(input_ids=input_ids, attention_mask=attention_mask)


def wrap_plain(model: PreTrainedModel, task: str) -> torch.nn.Module:
    """Wraps a model of `build_plain_model`."""
    kind = PlainImages if model.main_input_name == IMAGES else PlainTexts
    return kind(model, TASKS[task].output)


def build_plain_model(config: PreTrainedConfig, task: str, dtype: str) -> PreTrainedModel:
    """Builds a model for a task, whose parameters have a shape and no values.

    Args:
        config: the config of the checkpoint; nothing else of it is read.
        task: a key of `TASKS`.
        dtype: a key of `model.DTYPES`.

    Raises:
        UserError: transformers has no model of this type for the task, or it takes something else
            than texts or images.
    """
    import transformers

    kind = getattr(transformers, TASKS[task].auto_class)
    if type(config) not in kind._model_mapping:
        raise UserError(
            f"transformers has no {TASKS[task].made} of the type {config.model_type!r}.",
            instead="Write the task that the checkpoint was made for.",
        )
    with untouched_memory():
        model = kind.from_config(config, dtype=DTYPES[dtype])
    if model.main_input_name not in (IMAGES, TEXTS):
        raise UserError(
            f"{type(model).__name__} takes {model.main_input_name}, and there is no adapter for "
            "that.",
            instead="Choose a model of texts or of images.",
        )
    model.tie_weights()
    return model.requires_grad_(False).eval()


def example_inputs(
    model: PreTrainedModel, options: ExportOptions, dtype: str
) -> tuple[dict[str, torch.Tensor], dict[str, Any] | None, int]:
    """Inputs to trace with.

    Returns:
        `pixel_values`, (batch, channels, height, width), or `input_ids` and `attention_mask`,
        int64 (batch, sequence); the dynamic dimensions of each, or None; and the longest sequence,
        0 for images.

    Raises:
        UserError: the size of an image or of a text is neither in the config nor in the options.
    """
    if model.main_input_name == IMAGES:
        pixels = _pixels(model.config, options, dtype)
        return {IMAGES: pixels}, None, 0
    bound = _positions(model, options)
    dynamic = options.dynamic_seq_len and bound > 1
    length = min(3, bound) if dynamic else bound
    shape = (options.batch_size, length)
    inputs = {
        TEXTS: torch.zeros(shape, dtype=torch.int64),
        "attention_mask": torch.ones(shape, dtype=torch.int64),
    }
    if not dynamic:
        return inputs, None, bound
    dim = torch.export.Dim("sequence", max=bound)
    return inputs, {name: {1: dim} for name in inputs}, bound


def _pixels(config: PreTrainedConfig, options: ExportOptions, dtype: str) -> torch.Tensor:
    size = options.image_size or getattr(config, "image_size", 0)
    if not isinstance(size, int) or size < 1:
        raise UserError(
            f"The config of this {config.model_type} does not say how large an image is.",
            instead="Write image_size = the height and width that its preprocessor gives, for "
            "example 224.",
        )
    channels = getattr(config, "num_channels", 3)
    return torch.zeros(options.batch_size, channels, size, size, dtype=DTYPES[dtype])


def _positions(model: PreTrainedModel, options: ExportOptions) -> int:
    config = model.config
    limit = max_positions(config)
    if limit is not None:
        limit -= positions_after_padding(model)
    length = options.max_seq_len or limit
    if length is None:
        raise UserError(
            f"The config of this {config.model_type} does not say how long a text may be.",
            instead="Write max_seq_len = the number of tokens.",
        )
    if limit is not None and length > limit:
        raise UserError(
            f"max_seq_len = {length} is more than the {limit} positions that the model was made "
            "for.",
            instead=f"Write max_seq_len = {limit} or less.",
        )
    return length
