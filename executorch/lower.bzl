"""`executorch_lower`: lowers an exported program for a device.

```starlark
load("@rules_executorch//executorch:defs.bzl", "executorch_lower")

executorch_lower(
    name = "smollm2_pixel",
    device = "@rules_executorch//executorch/devices:android_arm64_xnnpack",
    exported = ":smollm2_export",
)
```

The output is the program, `NAME.pte`, with the model's weights in it; with `external_data = True`
they are in `NAME.ptd` beside it, and the program does not run without. It has the constant methods
that ExecuTorch's LLM runner reads.

Output groups: `manifest` (JSON: what went in, with hashes and versions, and what came out),
`report` (the same for people, with what was delegated), `options` (`schema lower`),
`sbom` (CycloneDX: the model with its licence, base models and data sets, and the packages that
compiled it), `provenance` (an in-toto statement with SLSA provenance; unsigned),
`operators` (what the runtime needs, as ExecuTorch's selective build reads it; for several programs
together see `executorch_operators`), `timings` (seconds and memory of each stage, and the one output
that differs from run to run: `schema timings`).

Provider: `ExecutorchProgramInfo`.
"""

load("//executorch/private/actions:shared.bzl", "shared_attributes")
load(
    "//executorch/private/rules:lower.bzl",
    "executorch_lower_shared",
    _executorch_lower = "executorch_lower",
)

def executorch_lower(
        name,
        device,
        exported,
        allow_noncanonical = False,
        allow_undelegated = False,
        allow_unquantized = False,
        calibration = None,
        external_data = False,
        memory = "auto",
        remote = "default",
        **kwargs):
    """Lowers an exported program for a device.

    Args:
        name: name of the target.
        device: the `executorch_device` to lower for, for example
            `@rules_executorch//executorch/devices:android_arm64_xnnpack`.
        exported: the `executorch_export` to lower.
        allow_noncanonical: whether bytes that depend on chance are accepted, where the packages of
            the toolchain are not those for which rules_executorch makes them canonical. Otherwise
            they are an error that names what differs.
        allow_undelegated: whether a program of which the backend took nothing is wanted. Otherwise
            it is an error, since such a program runs on the slow portable operators alone.
        allow_unquantized: whether layers that the quantizer of the device's scheme does not take may
            stay as they are. Otherwise they are an error that names them.
        calibration: what a device that computes in int8 is calibrated with: a `.safetensors` file
            with a tensor for each input, by its name, whose first dimension counts the samples.
            XNNPACK has to have it. For microcontrollers and TOSA, seeded random ones stand in for
            it, which are enough to try a device and not to ship a model.
        external_data: whether the weights go into a `.ptd` beside the program, which the app gives
            to the runtime with it. Programs with the same weights, of another cache length for
            example, have the same one. For backends whose delegates ask for weights by name, which
            docs/backends.md lists.
        memory: that the action may take: `1g`, `2g`, `4g` and so on up to `256g`, or `auto`: 2.5
            times the weights as they are lowered and 1 GiB, where the checkpoint is from the module
            extension, whose lock file has sizes, and 4g otherwise. Bazel starts no more actions at
            once than fit into the machine.
        remote: what a remote cache and remote execution may do with the action and its outputs:
            `default`, `no_upload` or `local`; see `executorch_export`.
        **kwargs: attributes that every rule has, such as `visibility`.
    """
    shared = shared_attributes(name, kwargs)
    executorch_lower_shared(
        device = device,
        exported = exported,
        allow_noncanonical = allow_noncanonical,
        allow_undelegated = allow_undelegated,
        allow_unquantized = allow_unquantized,
        calibration = calibration,
        external_data = external_data,
        memory = memory,
        remote = remote,
        **shared
    )
    _executorch_lower(name = name, shared = shared["name"], **kwargs)
