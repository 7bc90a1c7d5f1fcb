"""`executorch_parity_test`: a program computes what the eager model computes.

```starlark
load("@rules_executorch//executorch:defs.bzl", "executorch_parity_test")

executorch_parity_test(
    name = "smollm2_host_test",
    program = ":smollm2_host",
)
```

The test loads the program into the ExecuTorch runtime and the weights into transformers, feeds
both the same tokens, and compares the logits position by position, then the tokens that greedy
decoding gives. A lossy program (quantized, half precision) declares how far it may be off as
`tolerance`.
"""

load("//executorch/private/rules:parity_test.bzl", _executorch_parity_test = "executorch_parity_test")

executorch_parity_test = _executorch_parity_test
