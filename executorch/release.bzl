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

load("//executorch/private/actions:shared.bzl", "shared_attributes")
load(
    "//executorch/private/rules:release.bzl",
    "executorch_release_shared",
    _executorch_release = "executorch_release",
)

def executorch_release(name, programs, remote = "default", **kwargs):
    """Packs programs with what belongs to them into an archive.

    Args:
        name: name of the target.
        programs: the programs to release, each in a folder of its target's name.
        remote: what a remote cache and remote execution may do with the action and its output:
            `default`, `no_upload` or `local`; see `executorch_export`.
        **kwargs: attributes that every rule has, such as `visibility`.
    """
    shared = shared_attributes(name, kwargs)
    executorch_release_shared(programs = programs, remote = remote, **shared)
    _executorch_release(name = name, shared = shared["name"], **kwargs)
