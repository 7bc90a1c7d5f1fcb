"""Several safetensors files with an index: `model.safetensors.index.json`."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rules_executorch.checkpoint import strict_json
from rules_executorch.checkpoint.safetensors_file import SafetensorsFile
from rules_executorch.common.errors import UserError

_MAX_INDEX_BYTES = 64_000_000


def few(names: Sequence[str], limit: int = 3) -> str:
    """`a, b, c and 4 more`: names for a message."""
    shown = ", ".join(str(name)[:200] for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def by_name(paths: Sequence[str]) -> dict[str, str]:
    """The path of each file name.

    Raises:
        UserError: two files have the same name.
    """
    found: dict[str, str] = {}
    for path in paths:
        name = os.path.basename(path)
        if found.setdefault(name, path) != path:
            raise UserError(
                f"Two files are called {name}: {found[name]} and {path}.",
                instead="Keep the one that belongs to this model in `srcs` of the hf_model.",
            )
    return found


def read_index(path: str) -> dict[str, str]:
    """The index's map from tensor names to file names.

    Raises:
        UserError: not readable, no `weight_map`, or a file name with a folder in it.
    """
    refetch = "Fetch the index again from the model's repository."
    index = strict_json.read_object(path, limit=_MAX_INDEX_BYTES)
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise UserError(f"The index {path} has no `weight_map`.", instead=refetch)
    for name, shard in weight_map.items():
        if not isinstance(shard, str) or not shard or shard != os.path.basename(shard):
            raise UserError(
                f"The index {path} puts the tensor {name[:200]!r} into {str(shard)[:200]!r}, which"
                " is not the name of a file beside it.",
                instead=refetch,
            )
        if not shard.endswith(".safetensors"):
            raise UserError(
                f"The index {path} names {shard[:200]!r}, which is not a safetensors file.",
                instead="Use a revision of the model that has safetensors weights.",
            )
    return weight_map


def open_shards(index: str, shards: Sequence[str]) -> dict[str, SafetensorsFile]:
    """Opens the files that an index names and checks them against it.

    Args:
        index: path of `*.safetensors.index.json`.
        shards: paths of the safetensors files that were given; those that the index does not name
            are passed over.

    Returns:
        the file of each tensor name.

    Raises:
        UserError: a shard is missing, a tensor is not in the shard that the index says, or a shard
            holds a tensor that the index does not know.
    """
    weight_map = read_index(index)
    given = by_name(shards)
    wanted = sorted(set(weight_map.values()))
    missing = [shard for shard in wanted if shard not in given]
    if missing:
        raise UserError(
            f"The index {index} wants {len(wanted)} shards, and {len(missing)} of them"
            f" {'is' if len(missing) == 1 else 'are'} not given: {few(missing)}.",
            instead="Add the missing files to `srcs` of the hf_model.",
        )
    files = {shard: SafetensorsFile(given[shard]) for shard in wanted}
    for shard, file in files.items():
        named = {name for name, where in weight_map.items() if where == shard}
        lacking = sorted(named - set(file.entries))
        if lacking:
            raise UserError(
                f"{file.path} lacks {len(lacking)} tensors that the index {index} puts there:"
                f" {few(lacking)}.",
                instead="Take all shards and the index from one revision of the model.",
            )
        unnamed = sorted(set(file.entries) - named)
        if unnamed:
            raise UserError(
                f"{file.path} holds {len(unnamed)} tensors that the index {index} does not put"
                f" there: {few(unnamed)}.",
                instead="Take all shards and the index from one revision of the model.",
            )
    return {name: files[shard] for name, shard in weight_map.items()}
