"""Sorting the files of a checkpoint by what they are, and refusing the unsafe ones."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

from rules_executorch.checkpoint.sharded import by_name, few
from rules_executorch.common.errors import UserError

_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib")
_OTHER_WEIGHTS = (".h5", ".msgpack", ".onnx", ".tflite", ".npz", ".pte", ".ot")

_CONVERT = (
    "Convert them once, in an environment where running the author's code is acceptable:"
    " python -c \"import transformers as t; t.AutoModelForCausalLM.from_pretrained('FOLDER')"
    ".save_pretrained('SAFE_FOLDER')\" writes safetensors; then give those files in `srcs`, and"
    " leave the pickled ones out."
)


@dataclasses.dataclass(frozen=True)
class Sources:
    """The files of a checkpoint by their role; paths, or None where there is none."""

    safetensors: tuple[str, ...] = ()
    index: str | None = None
    gguf: str | None = None
    config: str | None = None
    generation_config: str | None = None
    tokenizer: str | None = None
    tokenizer_config: str | None = None
    chat_template: str | None = None
    readme: str | None = None
    passed_over: tuple[str, ...] = ()

    @property
    def format(self) -> str:
        """`safetensors` or `gguf`."""
        return "gguf" if self.gguf else "safetensors"

    @property
    def weights(self) -> tuple[str, ...]:
        """Every file that holds weights."""
        return (self.gguf,) if self.gguf else self.safetensors


def _refuse_pickles(paths: Sequence[str]) -> None:
    pickled = sorted(path for path in paths if path.lower().endswith(_PICKLES))
    if pickled:
        raise UserError(
            f"{few(pickled)} may hold pickled weights. Reading a pickle runs code of its author,"
            " so they are never opened.",
            instead=_CONVERT,
        )


def _one_weights_format(gguf: Sequence[str], safetensors: Sequence[str], index: str | None) -> None:
    if len(gguf) > 1:
        raise UserError(
            f"There are {len(gguf)} GGUF files: {few(gguf)}.",
            instead="Give one. `llama-gguf-split --merge` joins the parts of a split model.",
        )
    if gguf and safetensors:
        raise UserError(
            f"There are weights in two formats: {few([*gguf, *safetensors])}.",
            instead="Keep one of the formats in `srcs` of the hf_model.",
        )
    if gguf and index:
        raise UserError(
            f"The index {index} does not belong to the GGUF file {gguf[0]}.",
            instead="Remove the index from `srcs` of the hf_model.",
        )
    adapters = [path for path in safetensors if os.path.basename(path).startswith("adapter_")]
    if adapters:
        raise UserError(
            f"{few(adapters)} holds the weights of an adapter (LoRA), not of a whole model.",
            instead="Merge it into its base model (`merge_and_unload` of the peft package) first.",
        )
    if len(safetensors) > 1 and index is None:
        raise UserError(
            f"There are {len(safetensors)} safetensors files but no index: {few(safetensors)}.",
            instead="Add `model.safetensors.index.json` to `srcs` of the hf_model.",
        )


def find_sources(paths: Sequence[str], *, weights_only: bool = False) -> Sources:
    """Finds the role of each file of a checkpoint by its name.

    Args:
        paths: all files of the checkpoint, in any order.
        weights_only: the paths are the weights alone, so that other files may be absent.

    Raises:
        UserError: no weights, weights in two formats, pickled weights, an adapter's weights, two
            files of one name, or no config.json beside safetensors.
    """
    paths = sorted(paths)
    _refuse_pickles(paths)
    named = by_name(paths)
    gguf = [path for path in paths if path.lower().endswith(".gguf")]
    safetensors = [path for path in paths if path.endswith(".safetensors")]
    indexes = [path for path in paths if path.endswith(".safetensors.index.json")]
    if len(indexes) > 1:
        raise UserError(
            f"There are {len(indexes)} indexes of shards: {few(indexes)}.",
            instead="Keep the one of the wanted variant in `srcs` of the hf_model.",
        )
    index = indexes[0] if indexes else None
    _one_weights_format(gguf, safetensors, index)
    if not gguf and not safetensors and not index:
        others = [path for path in paths if path.lower().endswith(_OTHER_WEIGHTS)]
        found = f" {few(others)} cannot be read here." if others else ""
        raise UserError(
            f"There are no weights among the {len(paths)} files of the model.{found}",
            instead="Add its *.safetensors files, or one .gguf file, to `srcs` of the hf_model.",
        )
    config = named.get("config.json")
    if config is None and not gguf and not weights_only:
        raise UserError(
            "There is no config.json among the files of the model, so its architecture is unknown.",
            instead="Add the config.json of the model's repository to `srcs` of the hf_model.",
        )
    return Sources(
        safetensors=tuple(safetensors),
        index=index,
        gguf=gguf[0] if gguf else None,
        config=config,
        generation_config=named.get("generation_config.json"),
        tokenizer=named.get("tokenizer.json"),
        tokenizer_config=named.get("tokenizer_config.json"),
        chat_template=named.get("chat_template.jinja"),
        readme=named.get("README.md"),
    )
