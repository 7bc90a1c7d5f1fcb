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

load("//executorch/private:device.bzl", _executorch_device = "executorch_device")

def executorch_device(name, backend, options = {}, constraint_values = [], packages = None, **kwargs):
    """Declares a device.

    Args:
        name: name of the target.
        backend: the backend that takes the graph: `portable` (none, the portable operators alone)
            or `xnnpack`.
        options: dict from names of the backend's options to their values: booleans, integers,
            strings, lists of strings. A name that the backend does not have is an error.
        constraint_values: what an app's platform must have for a program of this device to fit.
            Empty fits every platform.
        packages: what a backend needs beside ExecuTorch itself, for example
            `@executorch_toolchains//:coreml`; installed when something is lowered for the device.
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
        packages = packages,
        **kwargs
    )
