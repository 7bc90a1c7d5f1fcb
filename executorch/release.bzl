"""`executorch_release`: programs with all that an app and an auditor need, as one archive.

```starlark
load("@rules_executorch//executorch:defs.bzl", "executorch_release")

executorch_release(
    name = "assistant_1_0",
    programs = [
        ":smollm2_pixel",
        ":smollm2_iphone",
    ],
)
```

`assistant_1_0.tar` has one folder per program with `model.pte` (and `model.ptd`), the tokenizer and
its settings, `manifest.json`, `report.md`, `sbom.cdx.json`, `provenance.json` and the model's
licence texts, and `SHA256SUMS` over all of it. Its bytes depend on the files alone: the order is
that of the names, and times, owners and modes are fixed.

On another machine, `bazel run @rules_executorch//tools:verify -- assistant_1_0.tar` checks every
byte of it: files against `SHA256SUMS`, programs against their manifests, SBOM and provenance
against the programs. Sign the archive, or publish its digest: `--sha256` compares it.
"""

load("//executorch/private/rules:release.bzl", _executorch_release = "executorch_release")

executorch_release = _executorch_release
