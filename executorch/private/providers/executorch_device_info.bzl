"""The provider of `executorch_device`."""

visibility("//...")

DOC = """A device to lower for: a backend with its options, and the platform its apps are built for."""

FIELDS = {
    "label": "Label of the `executorch_device` target.",
    "backend": "string: name of the backend.",
    "options": "dict: options of the backend, JSON values, only the ones that were set.",
    "constraints": "List of ConstraintValueInfo: the same as `constraint_values`, for " +
                   "`ctx.target_platform_has_constraint`.",
    "constraint_values": "List of Labels: the constraint values an app's platform must have for " +
                         "the program to fit. Empty fits every platform.",
    "packages": "`ExecutorchToolchainInfo` or None: the Python packages to lower with, where the " +
                "toolchain's own are not enough.",
}

ExecutorchDeviceInfo = provider(doc = DOC, fields = FIELDS)
