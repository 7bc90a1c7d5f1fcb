"""`executorch_operators`: what a runtime needs to run an app's programs, for a selective build.

```starlark
load("@rules_executorch//executorch:defs.bzl", "executorch_operators")

executorch_operators(
    name = "app_operators",
    programs = [
        ":assistant_pixel",
        ":detector_pixel",
    ],
)
```

The output, `NAME.yaml`, is what ExecuTorch calls `selected_operators.yaml`: every operator that one
of the programs calls, with the dtypes and dim orders it is called with. Its build takes the file
as `--op_selection_yaml_path` of `codegen/gen.py`, or merges it with others by
`codegen/tools/gen_all_oplist.py`. `executorch_budget_test` takes it as `runtime_operators`: a
program that needs another operator then fails a test and not the app.

For one program there is the same as output group `operators` of `executorch_lower`.
"""

load("//executorch/private/actions:shared.bzl", "shared_attributes")
load(
    "//executorch/private/rules:operators.bzl",
    "executorch_operators_shared",
    _executorch_operators = "executorch_operators",
)

def executorch_operators(name, programs, **kwargs):
    """Lists the operators that several programs need together.

    Args:
        name: name of the target.
        programs: the programs that the app carries.
        **kwargs: attributes that every rule has, such as `visibility`.
    """
    shared = shared_attributes(name, kwargs)
    executorch_operators_shared(programs = programs, **shared)
    _executorch_operators(name = name, shared = shared["name"], **kwargs)
