"""What a backend needs beside executorch itself."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
from collections.abc import Mapping
from typing import Any

from rules_executorch.common.errors import UserError

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
