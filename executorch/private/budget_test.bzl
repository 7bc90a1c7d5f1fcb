"""The rule behind the macro `executorch_budget_test`; documented in //executorch:budget_test.bzl."""

load("//executorch/private:actions.bzl", "COMMAND_ATTRS", "TOOLCHAIN_TYPE")
load("//executorch/private:launch.bzl", "command_executable")
load("//executorch/private:messages.bzl", "refuse")
load("//executorch/private/providers:executorch_program_info.bzl", "ExecutorchProgramInfo")

visibility("//...")

def _is_share(text):
    whole, _, fraction = text.partition(".")
    return (whole + fraction).isdigit() and float(text) <= 1.0

def _executorch_budget_test_impl(ctx):
    arguments = ["--manifest", ctx.attr.program[ExecutorchProgramInfo].manifest]
    for name in ["max_program_bytes", "max_planned_bytes"]:
        value = getattr(ctx.attr, name)
        if value and not value.isdigit():
            refuse(ctx, "{} = {} is not a number of bytes.".format(name, value), "Write an integer, for example 2000000.")
        if value:
            arguments += ["--" + name.replace("_", "-"), value]
    share = ctx.attr.min_delegated_share
    if share:
        if not _is_share(share):
            refuse(ctx, "min_delegated_share = {} is not a share.".format(share), "Write a number from 0 to 1, for example 0.9.")
        arguments += ["--min-delegated-share", share]
    if ctx.attr.limits_operators:
        arguments += ["--allowed-operators"] + ctx.attr.allowed_operators
    for file in ctx.files.runtime_operators:
        arguments += ["--runtime-operators", file]
    if len(arguments) == 2:
        refuse(
            ctx,
            "No limit is set, so that this test could not fail.",
            "Write max_program_bytes, max_planned_bytes, min_delegated_share, allowed_operators or runtime_operators.",
        )
    return [
        command_executable(ctx, "budget", arguments),
        testing.ExecutionInfo({"block-network": "1"}),
    ]

budget_test = rule(
    implementation = _executorch_budget_test_impl,
    attrs = COMMAND_ATTRS | {
        "allowed_operators": attr.string_list(doc = "Operators that may be called."),
        "limits_operators": attr.bool(doc = "Whether `allowed_operators` is a limit, also when it is empty."),
        "max_planned_bytes": attr.string(doc = "Bytes that a method plans; empty does not limit."),
        "max_program_bytes": attr.string(doc = "Bytes of the `.pte`; empty does not limit."),
        "min_delegated_share": attr.string(doc = "0 to 1; empty does not limit."),
        "program": attr.label(
            mandatory = True,
            providers = [ExecutorchProgramInfo],
            doc = "The `executorch_lower` to test.",
        ),
        "runtime_operators": attr.label_list(
            allow_files = [".yaml"],
            doc = "`selected_operators.yaml` of the app's runtime.",
        ),
    },
    doc = "Checks a program against limits.",
    test = True,
    toolchains = [TOOLCHAIN_TYPE],
)
