"""Writing safetensors with canonical bytes: sorted names, no metadata but the format's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rules_executorch.common import dtypes
from rules_executorch.common.files import whole_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch


def write(path: str, tensors: Mapping[str, torch.Tensor]) -> None:
    """Writes `tensors` to `path`: the bytes depend on names and values alone.

    Tensors lie in the order of descending element size, then name, as the safetensors library
    lays them out, so that each is aligned; the header is padded with spaces to 8 bytes.
    """
    import torch

    names = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name in names:
        tensor = tensors[name]
        size = tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": dtypes.safetensors_name(str(tensor.dtype).removeprefix("torch.")),
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + size],
        }
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)
    with whole_file(path) as part, open(part, "wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for name in names:
            tensor = tensors[name].detach().contiguous().cpu()
            if tensor.numel():
                file.write(memoryview(tensor.reshape(-1).view(torch.uint8).numpy()))
