"""A checkpoint's tensors as a model of transformers has them.

What `from_pretrained` does to names and tensors, without loading any: the renamings and
conversions of `transformers.conversion_mapping` are asked for each name in a file's header, and the
operations of `transformers.core_model_loading` (merge, split, transpose) run on one parameter at a
time, when it is read. What a conversion gives is known beforehand from a run on `meta`.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rules_executorch.checkpoint.sharded import few
from rules_executorch.checkpoint.stored_weights import Weights
from rules_executorch.common import dtypes
from rules_executorch.common.errors import UserError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel
    from transformers.core_model_loading import WeightConverter


@dataclasses.dataclass(eq=False)
class _Converted:
    """Tensors that one conversion makes out of others.

    Attributes:
        first: the target by which transformers calls the conversion.
        converter: transformers' object; never changed.
        sources: the checkpoint's names by the pattern that each matched.
        results: shape and dtype of each target.
    """

    first: str
    converter: WeightConverter
    sources: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    results: dict[str, tuple[tuple[int, ...], str]] = dataclasses.field(default_factory=dict)

    def names(self) -> list[str]:
        """The checkpoint's names, in the order in which they are merged."""
        return [name for names in self.sources.values() for name in names]


class ModelWeights(Weights):
    """The tensors of a checkpoint by the names, and in the form, of a model's state dict."""

    def __init__(self, stored: Weights, model: PreTrainedModel) -> None:
        """Finds what becomes of each tensor; none is read.

        Args:
            stored: the checkpoint.
            model: of `architecture.empty_model`.

        Raises:
            UserError: tensors do not fit the conversion that transformers has for them.
        """
        self._stored = stored
        self._model = model
        self._renamed: dict[str, str] = {}
        self._converted: dict[str, _Converted] = {}
        self._at_hand: tuple[_Converted, dict[str, torch.Tensor]] | None = None
        left = self._sort()
        self.missing = tuple(sorted(self._missing()))
        """The model's tensors that the checkpoint lacks."""
        self.passed_over = tuple(sorted(left))
        """The checkpoint's tensors that the model has no place for."""

    def _sort(self) -> set[str]:
        """Gives each tensor its place in the model; returns those that have none."""
        from transformers.conversion_mapping import get_model_conversion_mapping
        from transformers.core_model_loading import (
            WeightConverter,
            WeightRenaming,
            dot_natural_key,
            rename_source_key,
        )

        state = self._model.state_dict()
        prefix = self._model.base_model_prefix
        transforms = []
        if self._stored.named_by_transformers:
            transforms = get_model_conversion_mapping(self._model)
        renamings = [t for t in transforms if isinstance(t, WeightRenaming)]
        converters = [t for t in transforms if isinstance(t, WeightConverter)]
        by_pattern = {pattern: c for c in converters for pattern in c.source_patterns}
        groups: dict[str, _Converted] = {}
        left: set[str] = set()
        for name in sorted(self._stored.names(), key=dot_natural_key):
            target, pattern = rename_source_key(name, renamings, converters, prefix, state)
            if target not in state and name in state:
                # The name is one of the model's, whatever the patterns make of it.
                target, pattern = rename_source_key(name, [], [], prefix, state)
            if target not in state:
                left.add(name)
            elif pattern is None:
                if target in groups or self._renamed.setdefault(target, name) != name:
                    left.add(name)
            elif target in self._renamed:
                left.add(name)
            else:
                group = groups.setdefault(target, _Converted(target, by_pattern[pattern]))
                group.sources.setdefault(pattern, []).append(name)
        for group in groups.values():
            group.results = self._foresee(group)
            for target in group.results:
                if target in state:
                    self._renamed.pop(target, None)
                    self._converted[target] = group
        return left

    def _foresee(self, group: _Converted) -> dict[str, tuple[tuple[int, ...], str]]:
        import torch

        tensors = {
            name: torch.empty(
                self._stored.shape(name),
                dtype=dtypes.torch_dtype(self._stored.dtype(name)),
                device="meta",
            )
            for name in group.names()
        }
        made = self._run(group, tensors)
        return {
            name: (tuple(value.shape), str(value.dtype).removeprefix("torch."))
            for name, value in made.items()
        }

    def _run(
        self, group: _Converted, tensors: Mapping[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        """Runs transformers' operations: the targets by name, from the sources by name."""
        converter: Any = copy.deepcopy(group.converter)
        for pattern, names in group.sources.items():
            for name in names:
                converter.add_tensor(group.first, name, pattern, lambda name=name: tensors[name])
        try:
            made = converter.convert(group.first, model=self._model, config=self._model.config)
        except Exception as error:
            # The operations check nothing; what does not fit ends in any exception of torch.
            names = group.names()
            operations = ", ".join(type(op).__name__ for op in group.converter.operations)
            raise UserError(
                f"{self._stored.source(names[0])} holds {few(names)}, which do not become"
                f" {group.first} of the architecture of config.json ({operations}):"
                f" {' '.join(str(error).split())[:300]}",
                instead="Take config.json and all weights from one revision of the model.",
            ) from error
        return {name: v[0] if isinstance(v, list) else v for name, v in made.items()}

    def _missing(self) -> set[str]:
        found = set(self._renamed) | set(self._converted)
        tied = dict(getattr(self._model, "all_tied_weights_keys", None) or {})
        for target, source in tied.items():
            kin = {source, *(name for name, root in tied.items() if root == source), target}
            if kin & found:
                found |= kin
        state = self._model.state_dict(keep_vars=True)
        # Modules that are shared, and not only tied, have their tensors under each name.
        here = {id(state[name]) for name in found if name in state}
        return {
            name for name, tensor in state.items() if name not in found and id(tensor) not in here
        }

    def names(self) -> list[str]:
        return sorted({*self._renamed, *self._converted})

    def shape(self, name: str) -> tuple[int, ...]:
        if name in self._converted:
            return self._converted[name].results[name][0]
        return self._stored.shape(self._renamed[name])

    def dtype(self, name: str) -> str:
        if name in self._converted:
            return self._converted[name].results[name][1]
        return self._stored.dtype(self._renamed[name])

    def source(self, name: str) -> str:
        return self._stored.source(self.origins(name)[0])

    def where(self) -> str:
        return self._stored.where()

    def origins(self, name: str) -> list[str]:
        """The checkpoint's own names of what `name` is made of."""
        if name in self._converted:
            return self._converted[name].names()
        return [self._renamed[name]]

    def _load(self, name: str) -> torch.Tensor:
        if name not in self._converted:
            return self._stored.tensor(self._renamed[name])
        group = self._converted[name]
        if self._at_hand is None or self._at_hand[0] is not group or name not in self._at_hand[1]:
            # What a split gave besides is asked for next, as a rule; it is kept until then.
            self._at_hand = None
            made = self._run(group, {n: self._stored.tensor(n) for n in group.names()})
            for origin in group.names():
                self._stored.release(origin)
            kept = {n: value for n, value in made.items() if self._converted.get(n) is group}
            self._at_hand = (group, kept)
        value = self._at_hand[1].pop(name)
        if not self._at_hand[1]:
            self._at_hand = None
        return value

    def release(self, name: str) -> None:
        for origin in self.origins(name):
            self._stored.release(origin)

    def __enter__(self) -> ModelWeights:
        self._stored.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._at_hand = None
        self._stored.__exit__(*error)
