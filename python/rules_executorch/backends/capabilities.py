"""What a backend can, as data alone: nothing here loads torch or executorch.

The file of a backend states it, and `bazel run //tools/tables:update` writes from it what the rules
know in Starlark and the tables of the docs.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from rules_executorch.backends.needs import Needs

BOOLEAN, STRING = "boolean", "string"


@dataclasses.dataclass(frozen=True)
class Option:
    """One option of a backend, as a device gives it.

    Attributes:
        name: as users write it.
        description: a sentence that says what it does, and what is taken without it.
        type: `boolean` or `string`, in the words of JSON schema.
        values: the strings that it may be; empty for any.
    """

    name: str
    description: str
    type: str = STRING
    values: tuple[str, ...] = ()

    def schema(self) -> dict[str, Any]:
        """Its JSON schema."""
        schema: dict[str, Any] = {"type": self.type, "description": self.description}
        return schema | ({"enum": list(self.values)} if self.values else {})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a backend can.

    Attributes:
        name: as users write it.
        runtime_name: as the runtime registers it; None for one that delegates nothing.
        dtypes: dtypes of programs that it takes parts of. For a backend that delegates nothing,
            those that the kernels of the runtime compute.
        options: what a device may say.
        needs: what has to be installed beside executorch itself.
        schemes: source quantization schemes of linear layers that its kernels compute.
        group_multiple: what the group size of a grouped scheme has to be a multiple of.
        embedding_schemes: those of embeddings.
        calibrated_schemes: values of the option `scheme` with which its ranges come from inputs.
        needs_calibration: whether those inputs have to be given: random ones, which show that a
            model fits a device, do not stand in for them.
        default_scheme: the one taken without the option; empty for none.
        dynamic_shapes: whether it takes a program whose sequence length varies.
        generation: whether it can hold a program that generates text; if not, it is for
            classifiers and the like.
        external_data: whether its weights can be in a data file beside the program: kernels of the
            runtime read them, or its delegates ask for them by name.
        operators: namespace of the operators that its graphs call in place of delegates and that
            the toolchain's runtime has no kernels for.
        runs_on_host: whether the runtime of the toolchain, with the packages of `needs`, executes
            its programs on the machine of a build.
        custom_kernels: whether an app's runtime is taken to have the kernels of ExecuTorch's LLM
            extension where a device says nothing of it: ExecuTorch's packages for phones have
            them, and the runtime of a microcontroller does not. None for a backend whose programs
            leave nothing to kernels of the CPU that the app chooses.
    """

    name: str
    runtime_name: str | None
    dtypes: tuple[str, ...]
    options: tuple[Option, ...] = ()
    needs: Needs = Needs()
    schemes: tuple[str, ...] = ()
    group_multiple: int = 1
    embedding_schemes: tuple[str, ...] = ()
    calibrated_schemes: tuple[str, ...] = ()
    needs_calibration: bool = False
    default_scheme: str = ""
    dynamic_shapes: bool = True
    generation: bool = True
    external_data: bool = False
    operators: str | None = None
    runs_on_host: bool = False
    custom_kernels: bool | None = None

    @property
    def options_schema(self) -> dict[str, Any]:
        """The options as JSON schema; `properties` lists every one."""
        properties = {option.name: option.schema() for option in self.options}
        return {"type": "object", "additionalProperties": False, "properties": properties}
