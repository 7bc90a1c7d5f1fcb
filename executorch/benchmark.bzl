"""`executorch_benchmark`: how fast a program loads, prefills and decodes on this machine.

```starlark
load("@rules_executorch//executorch:defs.bzl", "executorch_benchmark")

executorch_benchmark(
    name = "smollm2_benchmark",
    baselines = [":smollm2_host_plain"],
    program = ":smollm2_host",
)
```

`bazel run :smollm2_benchmark` prints a table: load time, prefill and decode in tokens per second,
and peak memory, each as the median of several runs with the smallest and the largest, and for each
baseline the ratio. Every run is a process of its own through the runner that an app would use, and
the programs take turns. `-- --help` lists the options, among them `--json FILE`.
"""

load("//executorch/private/rules:benchmark.bzl", _executorch_benchmark = "executorch_benchmark")

executorch_benchmark = _executorch_benchmark
