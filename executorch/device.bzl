"""`executorch_device`: a device to lower for.

```starlark
load("@rules_executorch//executorch:defs.bzl", "executorch_device")

executorch_device(
    name = "kiosk",
    backend = "xnnpack",
    constraint_values = [
        "@platforms//cpu:arm64",
        "@platforms//os:linux",
    ],
)
```

Devices that many people have are in `@rules_executorch//executorch/devices`.

Provider: `ExecutorchDeviceInfo`.
"""

load("//executorch/private/checks:limits.bzl", "limit_values")
load("//executorch/private/rules:device.bzl", _executorch_device = "executorch_device")
load("//executorch/private/tables:backends.bzl", "BACKENDS")

def _group(backend):
    """The packages that a backend needs, by a label of this module; an unknown one is refused later."""
    group = BACKENDS[backend].packages if backend in BACKENDS else None
    return Label("@executorch_toolchains//:" + group) if group else None

def executorch_device(
        name,
        backend,
        options = {},
        constraint_values = [],
        packages = None,
        max_program_bytes = None,
        max_planned_bytes = None,
        allowed_operators = None,
        runtime_operators = [],
        custom_ops = None,
        **kwargs):
    """Declares a device.

    Args:
        name: name of the target.
        backend: the backend that takes the graph, for example `xnnpack`, or `portable` for none:
            the portable operators alone. docs/backends.md lists them.
        options: dict from names of the backend's options to their values: booleans, integers,
            strings, lists of strings. A name that the backend does not have is an error.
        constraint_values: what an app's platform must have for a program of this device to fit.
            Empty fits every platform.
        packages: an `executorch_toolchain` with what the backend needs beside ExecuTorch itself. By
            default the group of the backend (docs/backends.md), which comes with the ruleset and is
            installed when something is lowered for the device.
        max_program_bytes: the most that a `.pte` may have, together with its `.ptd` if there is
            one. This and `max_planned_bytes` are what an `executorch_budget_test` of a program for
            the device checks, unless it says otherwise.
        max_planned_bytes: the most memory that a method may ask its caller for, all arenas together.
        allowed_operators: list of the operators that the app's runtime has, such as
            `aten::add.out`; `*` stands for anything. The runtime's own (`executorch_prim`) are
            always there. Building a program that calls another one is an error. By default nothing
            is known, and nothing checked.
        runtime_operators: list of labels of `selected_operators.yaml` files with which the app's
            runtime is built: it has their operators as well.
        custom_ops: whether `executorch_model` exports models that generate text with the operators
            of ExecuTorch's LLM extension (`custom_kv_cache` and `custom_sdpa`). By default, for
            `xnnpack`, unless `allowed_operators` lacks them, and for `portable` if
            `allowed_operators` has them; never for other backends.
        **kwargs: attributes that every rule has, such as `visibility`.
    """
    if type(options) != type({}):
        fail("executorch_device {}: options is a dict of plain values, not {}. ".format(name, type(options)) +
             "For a select(), write one executorch_device for each case and select among them.")
    _executorch_device(
        name = name,
        backend = backend,
        options_json = json.encode(options),
        constraint_values = constraint_values,
        packages = packages or _group(backend),
        custom_ops = {None: "", False: "no", True: "yes"}[custom_ops],
        **(limit_values(max_program_bytes, max_planned_bytes, allowed_operators, runtime_operators) | kwargs)
    )
