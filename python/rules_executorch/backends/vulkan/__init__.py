"""Vulkan: compute shaders for the GPUs of Android phones and of desktops.

Rests on `executorch.backends.vulkan.partitioner.vulkan_partitioner`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rules_executorch.backends import passes
from rules_executorch.backends.backend import Backend
from rules_executorch.backends.capabilities import BOOLEAN, Option
from rules_executorch.compat import read_patches

if TYPE_CHECKING:
    from executorch.exir.backend.partitioner import Partitioner

OPTIONS = (
    Option("force_fp16", "Compute and store float32 tensors as float16.", BOOLEAN),
    Option(
        "require_dynamic_shapes",
        "Take only operators whose shaders can follow a varying shape.",
        BOOLEAN,
    ),
    Option(
        "skip_bool_tensors",
        "Leave operators on booleans out, for GPUs without 8-bit storage.",
        BOOLEAN,
    ),
    Option(
        "small_texture_limits",
        "Textures of at most 2048 elements a side, which every Vulkan device has; "
        "otherwise 16384, which phones have.",
        BOOLEAN,
    ),
    Option(
        "storage",
        "Where tensors live, where an operator has the choice; texture_3d by default.",
        values=(
            "texture_3d",
            "texture_2d",
            "buffer",
        ),
    ),
)

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
    external_data=True,
    options=OPTIONS,
    patches=tuple(read_patches(__name__).values()),
    before=(passes.drop_overwritten_buffers,),
    after=(passes.fuse_quantized_embeddings,),
)
