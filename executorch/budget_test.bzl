"""`executorch_budget_test`: a program stays within what a device has.

```starlark
load("@rules_executorch//executorch:defs.bzl", "executorch_budget_test")

executorch_budget_test(
    name = "detector_budget_test",
    allowed_operators = ["quantized_decomposed::*"],
    max_planned_bytes = 256 * 1024,
    max_program_bytes = 2 * 1024 * 1024,
    min_delegated_share = 0.95,
    program = ":detector_u55",
)
```

The test reads the manifest alone, in a moment. When it fails it says by how much, which operators
or layers make it so, and what would pass.
"""

load("//executorch/private/checks:limits.bzl", "limit_values")
load("//executorch/private/rules:budget_test.bzl", _executorch_budget_test = "executorch_budget_test")

def executorch_budget_test(
        name,
        program,
        max_program_bytes = None,
        max_planned_bytes = None,
        min_delegated_share = None,
        allowed_operators = None,
        runtime_operators = [],
        size = "small",
        **kwargs):
    """Declares the test.

    For `max_program_bytes`, `max_planned_bytes` and the operators, those of the `executorch_device`
    that the program is lowered for hold by default.

    Args:
        name: name of the target.
        program: the `executorch_lower` to test.
        max_program_bytes: the most that the `.pte` may have, together with its `.ptd` if there is
            one.
        max_planned_bytes: the most memory that a method may ask its caller for, all arenas
            together: activations and caches.
        min_delegated_share: the least share of a method's calls that delegates run, 0 to 1.
        allowed_operators: list of the operators that the program may call outside of delegates,
            such as `aten::add.out`; `*` stands for anything. The runtime's own (`executorch_prim`)
            are always allowed. An empty list allows no others.
        runtime_operators: list of labels of `selected_operators.yaml` files, such as an
            `executorch_operators`, with which the app's runtime is built: their operators may be
            called as well. This or `allowed_operators` stands in place of both of the device.
        size: of the test.
        **kwargs: other attributes of a test.
    """
    _executorch_budget_test(
        name = name,
        min_delegated_share = "" if min_delegated_share == None else str(min_delegated_share),
        program = program,
        size = size,
        **(limit_values(max_program_bytes, max_planned_bytes, allowed_operators, runtime_operators) | kwargs)
    )
