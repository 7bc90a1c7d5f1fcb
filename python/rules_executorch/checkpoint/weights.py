"""Opens the weights of a checkpoint, whatever their format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rules_executorch.checkpoint.sources import find_sources
from rules_executorch.checkpoint.stored_weights import Weights, open_safetensors

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

    from rules_executorch.checkpoint.conversion import ModelWeights


def open_model_weights(files: Sequence[str], config: PreTrainedConfig, task: str) -> ModelWeights:
    """Opens the weights of a checkpoint by the names of the model that its config describes.

    Args:
        files: see `open_weights`.
        config: of the checkpoint.
        task: a key of `TASKS`.

    Raises:
        UserError: see `open_weights`, `empty_model` and `ModelWeights`.
    """
    from rules_executorch.checkpoint.architecture import empty_model
    from rules_executorch.checkpoint.conversion import ModelWeights

    return ModelWeights(open_weights(files), empty_model(config, task))


def open_weights(files: Sequence[str]) -> Weights:
    """Opens the weights among the files of a checkpoint.

    Args:
        files: one safetensors file, all shards with their index, or one GGUF file; other files of
            the checkpoint are passed over.

    Raises:
        UserError: see `find_sources`, `SafetensorsFile`, `open_shards`, `GgufFile` and
            `CompressedTensorsWeights`.
    """
    sources = find_sources(files, weights_only=True)
    if sources.gguf:
        from rules_executorch.checkpoint.gguf.weights import GgufWeights

        return GgufWeights(sources.gguf)
    stored = open_safetensors(sources)
    from rules_executorch.checkpoint import compressed_tensors

    if compressed_tensors.is_compressed(stored):
        return compressed_tensors.CompressedTensorsWeights(stored)
    return stored
