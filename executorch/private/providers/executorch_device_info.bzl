"""The provider of `executorch_device`."""

visibility("//executorch/...")

DOC = """A device to lower for: a backend with its options, and the platform its apps are built for."""

FIELDS = {
    "backend": "string: name of the backend.",
    "constraint_values": "List of Labels: the constraint values an app's platform must have for " +
                         "the program to fit. Empty fits every platform.",
    "constraints": "List of ConstraintValueInfo: the same as `constraint_values` and in its order, for " +
                   "`ctx.target_platform_has_constraint`.",
    "custom_ops": "bool: whether the app's runtime has the operators of ExecuTorch's LLM extension, and " +
                  "`executorch_model` exports models that generate text with them.",
    "label": "Label of the `executorch_device` target.",
    "max_planned_bytes": "int or None: the most memory that a method may ask its caller for.",
    "max_program_bytes": "int or None: the most that a `.pte` may have.",
    "operators": "struct or None: operators that the app's runtime has. `allowed` is a list of names, " +
                 "also with `*`; `files` a list of Files, `selected_operators.yaml`.",
    "options": "dict: options of the backend, JSON values, only the ones that were set.",
    "packages": "`ExecutorchToolchainInfo` or None: the Python packages to lower with, where the " +
                "toolchain's own are not enough.",
}

ExecutorchDeviceInfo = provider(doc = DOC, fields = FIELDS)
