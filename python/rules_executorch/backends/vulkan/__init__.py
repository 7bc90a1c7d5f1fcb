"""Vulkan: compute shaders for the GPUs of Android phones and of desktops.

Rests on `executorch.backends.vulkan.partitioner.vulkan_partitioner`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from executorch.exir import EdgeCompileConfig

from rules_executorch.backends.backend import Backend
from rules_executorch.compat import read_patches

if TYPE_CHECKING:
    from executorch.exir.backend.partitioner import Partitioner

OPTIONS: dict[str, Any] = {
    "force_fp16": {
        "type": "boolean",
        "description": "Compute and store float32 tensors as float16.",
    },
    "require_dynamic_shapes": {
        "type": "boolean",
        "description": "Take only operators whose shaders can follow a varying shape.",
    },
    "skip_bool_tensors": {
        "type": "boolean",
        "description": "Leave operators on booleans out, for GPUs without 8-bit storage.",
    },
    "small_texture_limits": {
        "type": "boolean",
        "description": "Textures of at most 2048 elements a side, which every Vulkan device has; "
        "otherwise 16384, which phones have.",
    },
    "storage": {
        "enum": ["texture_3d", "texture_2d", "buffer"],
        "type": "string",
        "description": "Where tensors live, where an operator has the choice; texture_3d by "
        "default.",
    },
}

SCHEMES = ("8da4w", "4w")
EMBEDDING_SCHEMES = ("4w",)
"""Those with shaders of their own; weights of other schemes would be dequantized at every call."""


def compile_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options in the form of ExecuTorch's partitioner."""
    from executorch.backends.vulkan.serialization.vulkan_graph_schema import VkStorageType

    storage = {
        "texture_3d": VkStorageType.TEXTURE_3D,
        "texture_2d": VkStorageType.TEXTURE_2D,
        "buffer": VkStorageType.BUFFER,
    }
    compiled = {name: value for name, value in options.items() if name != "storage"}
    if "storage" in options:
        compiled["storage_type_override"] = storage[options["storage"]]
    return compiled


def _partitioners(options: Mapping[str, Any]) -> list[Partitioner]:
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner

    return [VulkanPartitioner(compile_options(options))]


BACKEND = Backend(
    name="vulkan",
    runtime_name="VulkanBackend",
    dtypes=("float32", "float16"),
    partitioners=_partitioners,
    schemes=SCHEMES,
    embedding_schemes=EMBEDDING_SCHEMES,
    compile_config=lambda: EdgeCompileConfig(_check_ir_validity=False),
    external_data=True,
    options_schema={"type": "object", "additionalProperties": False, "properties": OPTIONS},
    drops_dead_state=True,
    patches=tuple(read_patches(__name__).values()),
)
