"""What a backend declares."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from executorch.exir import EdgeCompileConfig
    from executorch.exir.backend.partitioner import Partitioner


@dataclasses.dataclass(frozen=True)
class Backend:
    """A backend of ExecuTorch, as the lowering needs to know it.

    Attributes:
        name: as users write it.
        runtime_name: as the runtime registers it; None for one that delegates nothing.
        dtypes: dtypes of programs that it takes parts of. For a backend that delegates nothing,
            those that the kernels of the runtime compute.
        partitioners: makes the partitioners, in the order they run, from the options.
        compile_config: makes the configuration of the edge dialect.
        options_schema: JSON schema of the options; `properties` lists every one.
        needs: what has to be installed beside executorch itself, in words; empty for nothing.
        schemes: source quantization schemes of linear layers that its kernels compute.
        group_multiple: what the group size of a grouped scheme has to be a multiple of.
        embedding_schemes: those of embeddings.
        quantized_partitioners: in place of `partitioners` for a program with such a scheme.
    """

    name: str
    runtime_name: str | None
    dtypes: tuple[str, ...]
    partitioners: Callable[[Mapping[str, Any]], list[Partitioner]]
    compile_config: Callable[[], EdgeCompileConfig]
    options_schema: Mapping[str, Any]
    needs: str = ""
    schemes: tuple[str, ...] = ()
    group_multiple: int = 1
    embedding_schemes: tuple[str, ...] = ()
    quantized_partitioners: Callable[[Mapping[str, Any]], list[Partitioner]] | None = None

    def delegates(self) -> bool:
        """Whether it takes parts of the graph away from the portable kernels."""
        return self.runtime_name is not None

    def runs_here(self) -> bool:
        """Whether the runtime of the toolchain can execute its programs on this machine."""
        if self.runtime_name is None:
            return True
        from executorch.runtime import Runtime

        return Runtime.get().backend_registry.is_available(self.runtime_name)
