"""`executorch_export`: exports a model with `torch.export`, once for all devices.

```starlark
load("@rules_executorch//executorch:defs.bzl", "executorch_export")

executorch_export(
    name = "smollm2_export",
    model = ":smollm2",
    max_cache_len = 2048,
    max_seq_len = 512,
)
```

The outputs are the exported program, `NAME.pt2`, and its signature, `NAME.json`. The export reads
the model's configuration and these options, not its weights: an export is the same for every
platform and every fine-tune of an architecture. Other weights in the same model target export
nothing again; another target has an export of its own, with the same bytes.

Output groups: `options` (the options as the command line takes them: `export.schema.json`),
`timings` (seconds and memory of each stage, and the one output that differs from run to run:
`timings.schema.json`).

Provider: `ExportedProgramInfo`.
"""

load("//executorch/private/rules:export.bzl", _executorch_export = "executorch_export")

executorch_export = _executorch_export
