"""What a backend declares."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rules_executorch.common.errors import UserError

if TYPE_CHECKING:
    from executorch.exir import EdgeCompileConfig, EdgeProgramManager
    from executorch.exir.backend.partitioner import Partitioner
    from executorch.exir.pass_manager import PassType
    from torchao.quantization.pt2e.quantizer import Quantizer

    from rules_executorch.compat import Patch
    from rules_executorch.program.delegation import Delegation

SDK_ROOT = "sdk_root"
"""Name of the option that gives the folder of a vendor's SDK."""


@dataclasses.dataclass(frozen=True)
class Needs:
    """What a backend needs beside executorch itself, none of which it ever fetches.

    Attributes:
        group: the optional group of the toolchain's packages that holds `modules`; None for what
            no package registry has.
        modules: Python modules that must be there.
        sdk: name of the vendor's SDK; None if it needs none.
        variable: the environment variable that names the SDK's folder, if it has one. A rule names
            the folder with the option `sdk_root`, since an action sees no such variable.
        files: paths below the SDK's folder that prove it is one.
        how: a sentence that says where the SDK comes from.
    """

    group: str | None = None
    modules: tuple[str, ...] = ()
    sdk: str | None = None
    variable: str | None = None
    files: tuple[str, ...] = ()
    how: str = ""

    def sdk_root(self, options: Mapping[str, Any]) -> str:
        """The folder of the SDK: the option, or else the environment variable, or nothing."""
        return options.get(SDK_ROOT) or os.environ.get(self.variable or "", "")

    def check(self, backend: str, options: Mapping[str, Any]) -> None:
        """Refuses at once if something is not there.

        Raises:
            UserError: names what to install or to set.
        """
        if self.variable is not None:
            self._check_sdk(backend, options)
        missing = [name for name in self.modules if not _importable(name)]
        if not missing:
            return
        lacking = f"The backend {backend} needs {', '.join(missing)}, which cannot be imported."
        if self.group is None:
            raise UserError(lacking, instead=self.how)
        raise UserError(
            lacking,
            instead=f'Write packages = "@executorch_toolchains//:{self.group}" in the '
            "executorch_device; without Bazel, install what "
            f"tools/toolchain/groups/{self.group}.in lists.",
        )

    def _check_sdk(self, backend: str, options: Mapping[str, Any]) -> None:
        root = self.sdk_root(options)
        instead = (
            f'Write options = {{"{SDK_ROOT}": "/path/of/the/sdk"}} in the executorch_device, or '
            f"set {self.variable} where you run the command without Bazel. {self.how}"
        )
        if not root:
            raise UserError(
                f"The backend {backend} needs {self.sdk}, and nothing says where it is; it is "
                "never downloaded.",
                instead=instead,
            )
        lacking = [name for name in self.files if not os.path.exists(os.path.join(root, name))]
        if lacking:
            raise UserError(f"{root} is not {self.sdk}: it has no {lacking[0]}.", instead=instead)


def _importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        # A parent of it is missing.
        return False


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
        needs: what has to be installed beside executorch itself.
        schemes: source quantization schemes of linear layers that its kernels compute.
        group_multiple: what the group size of a grouped scheme has to be a multiple of.
        embedding_schemes: those of embeddings.
        quantized_partitioners: in place of `partitioners` for a program with such a scheme.
        dynamic_shapes: whether it takes a program whose sequence length varies.
        generation: whether it can hold a program that generates text; if not, it is for
            classifiers and the like.
        external_data: whether its weights can be in a data file beside the program: kernels of the
            runtime read them, or its delegates ask for them by name.
        quantizer: makes the quantizer that the options ask for, or None: it decides which
            operators of the graph compute in integers.
        calibrated_schemes: values of the option `scheme` with which its ranges come from inputs.
        needs_calibration: whether those inputs have to be given: random ones, which show that a
            model fits a device, do not stand in for them.
        default_scheme: the one taken without the option; empty for none.
        passes: makes passes over the edge dialect that run before the partitioners.
        finish: rewrites the edge program after the partitioners.
        drops_dead_state: whether `dead_state.drop_dead_state` has to come first.
        computes_tanh_gelu: whether it heeds `approximate="tanh"` of GELU; if not, that form is
            spelled out before it sees the graph (`tanh_gelu.spell_out_tanh_gelu`).
        patches: what has to be in force while it lowers.
        operators: namespace of the operators that its graphs call in place of delegates and that
            the toolchain's runtime has no kernels for.
        runtime_variables: environment variables by which the runtime finds the vendor's library;
            empty where that is not installed.
    """

    name: str
    runtime_name: str | None
    dtypes: tuple[str, ...]
    partitioners: Callable[[Mapping[str, Any]], list[Partitioner]]
    compile_config: Callable[[], EdgeCompileConfig]
    options_schema: Mapping[str, Any]
    needs: Needs = Needs()
    schemes: tuple[str, ...] = ()
    group_multiple: int = 1
    embedding_schemes: tuple[str, ...] = ()
    quantized_partitioners: Callable[[Mapping[str, Any]], list[Partitioner]] | None = None
    dynamic_shapes: bool = True
    generation: bool = True
    external_data: bool = False
    quantizer: Callable[[Mapping[str, Any]], Quantizer | None] | None = None
    calibrated_schemes: tuple[str, ...] = ()
    needs_calibration: bool = False
    default_scheme: str = ""
    passes: Callable[[Mapping[str, Any]], list[PassType]] | None = None
    finish: Callable[[EdgeProgramManager, Mapping[str, Any]], EdgeProgramManager] | None = None
    drops_dead_state: bool = False
    computes_tanh_gelu: bool = True
    patches: tuple[Patch, ...] = ()
    operators: str | None = None
    runtime_variables: Callable[[], Mapping[str, str]] | None = None

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
