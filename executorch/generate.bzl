"""`executorch_generate`: answers a prompt with a program, on this machine.

```starlark
load("@rules_executorch//executorch:defs.bzl", "executorch_generate")

executorch_generate(
    name = "smollm2_generate",
    program = ":smollm2_host",
)
```

`bazel run :smollm2_generate -- --prompt "What is the capital of France?"` streams the answer
through the runner that an app would use, with the model's chat template applied;
`-- --help` lists the other options.
"""

load("//executorch/private/rules:generate.bzl", _executorch_generate = "executorch_generate")

executorch_generate = _executorch_generate
