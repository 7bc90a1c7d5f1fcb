"""What every format of weights offers: tensors by transformers' state-dict names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rules_executorch.checkpoint.safetensors_file import SafetensorsFile
from rules_executorch.checkpoint.sharded import few, open_shards
from rules_executorch.checkpoint.sources import Sources
from rules_executorch.common import dtypes
from rules_executorch.common.errors import UserError

if TYPE_CHECKING:
    import torch


class Weights:
    """The tensors of a checkpoint by transformers' names; nothing is read before it is asked for.

    A context manager. Tensors may be used after it is closed: each keeps its memory map alive.
    """

    named_by_transformers = True
    """Whether the names are those of a version of transformers, this one or an older one; without
    that they are the model's own already."""

    def names(self) -> list[str]:
        """Every tensor's name, sorted."""
        raise NotImplementedError

    def shape(self, name: str) -> tuple[int, ...]:
        """Sizes of the tensor's dimensions, in torch's order."""
        raise NotImplementedError

    def dtype(self, name: str) -> str:
        """torch's name of the dtype that `tensor(name)` has."""
        raise NotImplementedError

    def source(self, name: str) -> str:
        """Path of the file that holds the tensor."""
        raise NotImplementedError

    def where(self) -> str:
        """Path of a file of the weights, for messages about all of them."""
        return self.source(self.names()[0])

    def _load(self, name: str) -> torch.Tensor:
        raise NotImplementedError

    def tensor(self, name: str, dtype: torch.dtype | None = None) -> torch.Tensor:
        """The tensor, on the CPU.

        Args:
            name: one of `names()`.
            dtype: convert to this; None keeps `dtype(name)`.

        Returns:
            A view of a private memory map where the format and `dtype` allow it, else a copy.

        Raises:
            KeyError: there is no such tensor.
        """
        value = self._load(name)
        return value if dtype is None else value.to(dtype)

    def release(self, name: str) -> None:
        """Says that a tensor was used and may leave memory; it is there again when it is read.

        Nothing may have been written to it.
        """

    def __enter__(self) -> Weights:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def resolve(
        self,
        wanted: Mapping[str, Sequence[int]],
        *,
        tied: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Finds the tensor for each parameter of a model.

        Args:
            wanted: shape of each parameter and persistent buffer, by its state-dict name.
            tied: names that share the tensor of another: `{"lm_head.weight":
                "model.embed_tokens.weight"}` where the config ties them.

        Returns:
            the checkpoint's name for each name of `wanted`; tied names have the same one.

        Raises:
            UserError: missing tensors, or another shape than wanted.
        """
        tied = dict(tied or {})
        here = set(self.names())
        found: dict[str, str] = {}
        missing: list[str] = []
        for name in wanted:
            root = tied.get(name, name)
            stored = [n for n in (root, name, *tied_with(name, tied)) if n in here]
            if stored:
                found[name] = stored[0]
            else:
                missing.append(name)
        self._check_missing(missing, len(wanted))
        self._check_shapes(wanted, found)
        return found

    def _check_missing(self, missing: Sequence[str], wanted: int) -> None:
        if missing:
            raise UserError(
                f"{len(missing)} of the {wanted} tensors that the architecture of config.json needs"
                f" are not in the weights ({self.where()}): {few(missing)}.",
                instead="Take config.json and all weights from one revision of the model.",
            )

    def _check_shapes(self, wanted: Mapping[str, Sequence[int]], found: Mapping[str, str]) -> None:
        wrong = [name for name in wanted if self.shape(found[name]) != tuple(wanted[name])]
        if wrong:
            first = found[wrong[0]]
            raise UserError(
                f"{len(wrong)} tensors have another shape than config.json asks for:"
                f" {first} in {self.source(first)} is {list(self.shape(first))}, wanted"
                f" {list(wanted[wrong[0]])}"
                f"{f'; also {few(wrong[1:])}' if wrong[1:] else ''}.",
                instead="Take config.json and the weights from one revision of the model.",
            )


def tied_with(name: str, tied: Mapping[str, str]) -> list[str]:
    """The other names of the tensor called `name`."""
    root = tied.get(name, name)
    return [other for other in (root, *(k for k, v in tied.items() if v == root)) if other != name]


class SafetensorsWeights(Weights):
    """One safetensors file or several with an index."""

    def __init__(self, files: Mapping[str, SafetensorsFile]) -> None:
        self._files = dict(files)

    def names(self) -> list[str]:
        return sorted(self._files)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._files[name].entries[name].shape

    def dtype(self, name: str) -> str:
        return dtypes.torch_name(self._files[name].entries[name].dtype)

    def source(self, name: str) -> str:
        return self._files[name].path

    def num_bytes(self, name: str) -> int:
        """Bytes of the tensor in its file."""
        return self._files[name].entries[name].num_bytes

    def num_elements(self, name: str) -> int:
        """Elements of the tensor."""
        return self._files[name].entries[name].num_elements

    def _load(self, name: str) -> torch.Tensor:
        return self._files[name].tensor(name)

    def release(self, name: str) -> None:
        self._files[name].release(name)


def open_safetensors(sources: Sources) -> SafetensorsWeights:
    """Opens safetensors files for the tensors they hold, quantized or not.

    Raises:
        UserError: see `SafetensorsFile` and `open_shards`.
    """
    if sources.index:
        return SafetensorsWeights(open_shards(sources.index, sources.safetensors))
    file = SafetensorsFile(sources.safetensors[0])
    return SafetensorsWeights(dict.fromkeys(file.entries, file))
