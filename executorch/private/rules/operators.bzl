"""The rules behind the macro `executorch_operators`; documented in //executorch:operators.bzl."""

load("//executorch/private/actions:command.bzl", "COMMAND_ATTRS", "TOOLCHAIN_TYPE", "command_args", "run_command")
load("//executorch/private/actions:shared.bzl", "public_rule")
load("//executorch/private/actions:transitions.bzl", "TRANSITION_ATTRS", "normalize")
load("//executorch/private/checks:labels.bzl", "public_name")
load("//executorch/private/checks:messages.bzl", "refuse")
load("//executorch/private/providers:executorch_program_info.bzl", "ExecutorchProgramInfo")

visibility("//executorch")

def select_operators(ctx, programs, name):
    """Declares the operators that programs need.

    Args:
        ctx: the context of a rule with `COMMAND_ATTRS` and the toolchain.
        programs: list of Files, `.pte`.
        name: name of the output, without `.yaml`.

    Returns:
        A File, in the format of ExecuTorch's `selected_operators.yaml`.
    """
    operators = ctx.actions.declare_file(name + ".yaml")
    args = command_args(ctx, "operators")
    args.add_all("--programs", programs)
    args.add("--out-operators", operators)
    run_command(
        ctx,
        args,
        mnemonic = "ExecutorchOperators",
        progress_message = "Listing the operators of %{label}",
        inputs = programs,
        outputs = [operators],
        memory = "2g",
    )
    return operators

def _executorch_operators_impl(ctx):
    if not ctx.attr.programs:
        refuse(ctx, "programs is empty.", "Name the executorch_lower targets that the app carries.")
    programs = {target[ExecutorchProgramInfo].program: None for target in ctx.attr.programs}
    operators = select_operators(ctx, programs.keys(), public_name(ctx.label))
    files = depset([operators])
    return [
        DefaultInfo(files = files, runfiles = ctx.runfiles([operators])),
        OutputGroupInfo(operators = files),
    ]

executorch_operators_shared = rule(
    implementation = _executorch_operators_impl,
    attrs = COMMAND_ATTRS | TRANSITION_ATTRS | {
        "programs": attr.label_list(mandatory = True, providers = [ExecutorchProgramInfo]),
    },
    cfg = normalize,
    doc = "Operators that several programs need together.",
    toolchains = [TOOLCHAIN_TYPE],
)

executorch_operators = public_rule(
    doc = "Operators that several programs need together.",
    providers = [],
)
