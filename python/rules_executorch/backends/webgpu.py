"""WebGPU: the same delegates as Vulkan's, run by shaders in a browser or through Dawn.

Rests on `executorch.backends.webgpu.partitioner`, which hands the work to Vulkan's partitioner; the
runtime registers itself under Vulkan's name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rules_executorch.backends import vulkan

if TYPE_CHECKING:
    from executorch.exir.backend.partitioner import Partitioner


def _partitioners(options: Mapping[str, Any]) -> list[Partitioner]:
    from executorch.backends.webgpu.partitioner import WebGPUPartitioner

    return [WebGPUPartitioner(vulkan.compile_options(options))]


BACKEND = dataclasses.replace(vulkan.BACKEND, name="webgpu", partitioners=_partitioners)
