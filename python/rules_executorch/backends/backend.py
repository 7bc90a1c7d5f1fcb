"""What a backend is: what it can, and how a graph becomes its own."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rules_executorch.backends.capabilities import Capabilities

if TYPE_CHECKING:
    from executorch.exir import EdgeCompileConfig
    from executorch.exir.backend.partitioner import Partitioner
    from executorch.exir.pass_manager import PassType
    from torchao.quantization.pt2e.quantizer import Quantizer

    from rules_executorch.backends.passes import AfterPass, BeforePass
    from rules_executorch.compat import Patch
    from rules_executorch.program.delegation import Delegation


def any_operator() -> EdgeCompileConfig:
    """The edge dialect with operators outside of the core ATen set.

    They run too, if the backend or the runtime has a kernel for them.
    """
    from executorch.exir import EdgeCompileConfig

    return EdgeCompileConfig(_check_ir_validity=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Backend(Capabilities):
    """A backend of ExecuTorch, as the lowering needs to know it.

    What it can is data, see `Capabilities`; what follows is code, which loads torch and executorch
    when it is called and not before.

    Attributes:
        partitioners: makes the partitioners, in the order they run, from the options.
        quantized_partitioners: in place of `partitioners` for a program with quantized weights.
        compile_config: makes the configuration of the edge dialect.
        quantizer: makes the quantizer that the options ask for, or None: it decides which
            operators of the graph compute in integers.
        before: passes over the graph that `torch.export` gave, before the quantizer.
        edge_passes: makes passes over the edge dialect that run before the partitioners.
        after: passes over the edge program that the partitioners left.
        patches: what has to be in force while it lowers.
        runtime_variables: environment variables by which the runtime finds the vendor's library;
            empty where that is not installed.
    """

    partitioners: Callable[[Mapping[str, Any]], list[Partitioner]]
    quantized_partitioners: Callable[[Mapping[str, Any]], list[Partitioner]] | None = None
    compile_config: Callable[[], EdgeCompileConfig] = any_operator
    quantizer: Callable[[Mapping[str, Any]], Quantizer | None] | None = None
    before: tuple[BeforePass, ...] = ()
    edge_passes: Callable[[Mapping[str, Any]], list[PassType]] = lambda options: []
    after: tuple[AfterPass, ...] = ()
    patches: tuple[Patch, ...] = ()
    runtime_variables: Callable[[], Mapping[str, str]] | None = None

    def partitioners_for(self, options: Mapping[str, Any], quantized: bool) -> list[Partitioner]:
        """The partitioners for a program with or without quantized weights."""
        if quantized and self.quantized_partitioners is not None:
            return self.quantized_partitioners(options)
        return self.partitioners(options)

    def delegates(self) -> bool:
        """Whether it takes parts of the graph away from the portable kernels."""
        return self.runtime_name is not None

    def took(self, delegation: Delegation) -> bool:
        """Whether anything of a method was left to the backend, if it takes anything at all."""
        if self.operators is not None:
            prefix = f"{self.operators}::"
            return any(name.startswith(prefix) for name in delegation.undelegated)
        return bool(delegation.delegates) or not self.delegates()

    def prepare_runtime(self) -> None:
        """Lets the runtime of this process find the vendor's library; before it loads a program."""
        if self.runtime_variables is not None:
            for name, value in self.runtime_variables().items():
                os.environ.setdefault(name, value)

    def runs_here(self) -> bool:
        """Whether the runtime of the toolchain can execute its programs on this machine."""
        if self.runtime_name is None:
            return self.operators is None
        if self.needs.sdk is not None:
            # The runtime of the wheel may register a backend whose driver is not there.
            return False
        self.prepare_runtime()
        from executorch.runtime import Runtime

        return Runtime.get().backend_registry.is_available(self.runtime_name)
