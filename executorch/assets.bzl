"""`executorch_assets`: what an app carries of a model, as a folder.

```starlark
load("@rules_executorch//executorch:defs.bzl", "executorch_assets")

executorch_assets(
    name = "assistant",
    programs = [
        ":smollm2_pixel",
        ":smollm2_iphone",
        ":smollm2_host",
    ],
)
```

The folder `assistant` has `model.pte` (and `model.ptd`, with weights outside of the program),
`manifest.json`, and `tokenizer.json` with what the checkpoint has of `tokenizer_config.json` and
`chat_template.jinja`. It goes into `data` of a `cc_binary` or `java_binary`, `assets` of an
`android_binary`, or `resources` of an Apple bundle.

The platform that the app is built for chooses the program: the one whose device's
`constraint_values` the platform has. If the platform has those of several, the most specific one is
taken, as `select()` does it: one for Android on arm64 goes before one for arm64. If none fits, or
two are equally specific, it is an error. An app that is built for three platforms has three folders,
and one export of the model.

For a platform that has none, `bazel build //...` would fail: give the target
`target_compatible_with` or the tag `manual`.

Output groups: `manifest`, and `operators` of the program that was chosen.

Provider: `ExecutorchAssetsInfo`.
"""

load("//executorch/private/rules:assets.bzl", _executorch_assets = "executorch_assets")

executorch_assets = _executorch_assets
