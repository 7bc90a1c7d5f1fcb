"""Models without a cache: one call takes everything and gives everything.

What a model takes follows from its forward: texts as `input_ids` and `attention_mask`, with
`token_type_ids` and the boxes of words (`bbox`) where it has them; images as `pixel_values`; sounds
as `input_values`, a waveform, or `input_features`, frames of a spectrogram.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import torch

from rules_executorch.checkpoint.architecture import positions_after_padding
from rules_executorch.checkpoint.config import max_positions
from rules_executorch.checkpoint.tasks import TASKS
from rules_executorch.common.errors import UserError
from rules_executorch.export.build import DTYPES, untouched_memory

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

    from rules_executorch.export.build import Dtype
    from rules_executorch.export.options import ExportOptions

IMAGES, TEXTS, SOUNDS, FRAMES = "pixel_values", "input_ids", "input_values", "input_features"
MASK, TYPES, BOXES = "attention_mask", "token_type_ids", "bbox"

SECONDS = 10
"""How long a sound is, where nothing says it."""


class StatelessModule(torch.nn.Module):
    """A model that returns some tensors of its result, the others left out of the graph."""

    def __init__(self, model: PreTrainedModel, outputs: tuple[str, ...]) -> None:
        """Wraps a model that gives `outputs`."""
        super().__init__()
        self.model = model
        self._outputs = outputs

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        bbox: torch.Tensor | None = None,
        pixel_values: torch.Tensor | None = None,
        input_values: torch.Tensor | None = None,
        input_features: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, ...]:
        """Runs the model on those of the inputs that it takes; see `example_inputs`."""
        inputs = {
            TEXTS: input_ids,
            MASK: attention_mask,
            TYPES: token_type_ids,
            BOXES: bbox,
            IMAGES: pixel_values,
            SOUNDS: input_values,
            FRAMES: input_features,
        }
        given = {name: value for name, value in inputs.items() if value is not None}
        found = self.model(**given, return_dict=True)
        return tuple(found[name] for name in self._outputs)


def build_plain_model(config: PreTrainedConfig, task: str, dtype: Dtype) -> PreTrainedModel:
    """Builds a model for a task, whose parameters have a shape and no values.

    Args:
        config: the config of the checkpoint; nothing else of it is read.
        task: a key of `TASKS`.
        dtype: a key of `model.DTYPES`.

    Raises:
        UserError: transformers has no model of this type for the task, or it takes something else
            than texts, images or sounds.
    """
    import transformers

    kind = getattr(transformers, TASKS[task].auto_class)
    if type(config) not in kind._model_mapping:
        raise UserError(
            f"transformers has no {TASKS[task].made} of the type {config.model_type!r}.",
            instead="Write the task that the checkpoint was made for.",
        )
    # Where a type has several models for a task, transformers looks for the one that is named.
    config.architectures = config.architectures or []
    with untouched_memory():
        model = kind.from_config(config, dtype=DTYPES[dtype])
    if model.main_input_name not in (IMAGES, TEXTS, SOUNDS, FRAMES):
        raise UserError(
            f"{type(model).__name__} takes {model.main_input_name}, and there is no adapter for "
            "that.",
            instead="Choose a model of texts, of images or of sounds.",
        )
    model.tie_weights()
    return model.requires_grad_(False).eval()


def example_inputs(
    model: PreTrainedModel, options: ExportOptions, dtype: Dtype
) -> tuple[dict[str, torch.Tensor], dict[str, Any] | None, int]:
    """Inputs to trace with.

    Returns:
        By name: `pixel_values`, (batch, channels, height, width); `input_ids`, `attention_mask`
        and `token_type_ids`, int64 (batch, sequence); `bbox`, int64 (batch, sequence, 4);
        `input_values`, (batch, samples); `input_features`, (batch, frames, bins); the dynamic
        dimensions of each, or None; and the longest sequence, 0 for images.

    Raises:
        UserError: the size of an image or of a text is neither in the config nor in the options.
    """
    main = model.main_input_name
    if main == IMAGES:
        return {IMAGES: _pixels(model.config, options, dtype)}, None, 0
    if main in (SOUNDS, FRAMES):
        sound, length = _sound(model, options, dtype)
        return {main: sound}, None, length
    bound = _positions(model, options)
    dynamic = options.dynamic_seq_len and bound > 1
    length = min(3, bound) if dynamic else bound
    shape = (options.batch_size, length)
    inputs = {
        TEXTS: torch.zeros(shape, dtype=torch.int64),
        MASK: torch.ones(shape, dtype=torch.int64),
    }
    takes = inspect.signature(model.forward).parameters
    if TYPES in takes and getattr(model.config, "type_vocab_size", 0) > 1:
        inputs[TYPES] = torch.zeros(shape, dtype=torch.int64)
    if BOXES in takes:
        inputs[BOXES] = torch.zeros((*shape, 4), dtype=torch.int64)
    dim = torch.export.Dim("sequence", max=bound)
    shapes: dict[str, Any] = {name: {1: dim} for name in inputs}
    if IMAGES in takes and BOXES in takes and getattr(model.config, "visual_embed", False):
        inputs[IMAGES] = _pixels(model.config, options, dtype)
        shapes[IMAGES] = None
    return inputs, shapes if dynamic else None, bound


def given_outputs(
    model: PreTrainedModel, task: str, inputs: dict[str, torch.Tensor]
) -> tuple[str, ...]:
    """The outputs of a task that a model has, found by running it on tensors without values.

    Raises:
        UserError: it has none of them.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    wanted = TASKS[task].outputs
    if len(wanted) == 1:
        return wanted
    with torch.no_grad(), FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fake = {name: mode.from_tensor(value) for name, value in inputs.items()}
        found = model(**fake, return_dict=True)
    return tuple(name for name in wanted if found.get(name) is not None)


def _pixels(config: PreTrainedConfig, options: ExportOptions, dtype: Dtype) -> torch.Tensor:
    vision = getattr(config, "vision_config", config)
    size = options.image_size or _image_size(vision) or _image_size(config)
    if not size:
        raise UserError(
            f"The config of this {config.model_type} does not say how large an image is.",
            instead="Write image_size = the height and width that its preprocessor gives, for "
            "example 224.",
        )
    height, width = (size, size) if isinstance(size, int) else size
    channels = getattr(vision, "num_channels", 3)
    return torch.zeros(options.batch_size, channels, height, width, dtype=DTYPES[dtype])


def _image_size(config: Any) -> int | tuple[int, int] | None:
    for name in ("image_size", "input_size"):
        size = getattr(config, name, None)
        if isinstance(size, int) and size > 0:
            return size
        if isinstance(size, list | tuple) and len(size) == 2:
            height, width = size
            return height, width
    backbone = getattr(config, "backbone_config", None)
    return _image_size(backbone) if backbone is not None else None


def _sound(
    model: PreTrainedModel, options: ExportOptions, dtype: Dtype
) -> tuple[torch.Tensor, int]:
    if model.main_input_name == SOUNDS:
        rate = getattr(model.config, "sampling_rate", None) or 16_000
        length = options.max_seq_len or SECONDS * rate
        shape: tuple[Any, ...] = (options.batch_size, length)
    else:
        bins = getattr(model.config, "num_mel_bins", None) or getattr(
            model.config, "feature_projection_input_dim", 80
        )
        length = options.max_seq_len or SECONDS * 100
        shape = (options.batch_size, length, bins)
    return torch.zeros(shape, dtype=DTYPES[dtype]), length


def _positions(model: PreTrainedModel, options: ExportOptions) -> int:
    limit = max_positions(model.config)
    if limit is not None:
        limit -= positions_after_padding(model)
    length = options.max_seq_len or limit
    if length is None:
        raise UserError(
            f"The config of this {model.config.model_type} does not say how long a text may be.",
            instead="Write max_seq_len = the number of tokens.",
        )
    if limit is not None and length > limit:
        raise UserError(
            f"max_seq_len = {length} is more than the {limit} positions that the model was made "
            "for.",
            instead=f"Write max_seq_len = {limit} or less.",
        )
    return length
