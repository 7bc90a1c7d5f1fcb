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
`report` (the same for people, with what was delegated), `options` (`lower.schema.json`),
`sbom` (CycloneDX: the model with its licence, base models and data sets, and the packages that
compiled it), `provenance` (an in-toto statement with SLSA provenance; unsigned),
`operators` (what the runtime needs, as ExecuTorch's selective build reads it; for several programs
together see `executorch_operators`), `timings` (seconds and memory of each stage, and the one output
that differs from run to run: `timings.schema.json`).

Provider: `ExecutorchProgramInfo`.
"""

load("//executorch/private/rules:lower.bzl", _executorch_lower = "executorch_lower")

executorch_lower = _executorch_lower
