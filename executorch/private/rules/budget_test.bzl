"""The rule behind the macro `executorch_budget_test`; documented in //executorch:budget_test.bzl."""

load("//executorch/private/actions:command.bzl", "COMMAND_ATTRS", "TOOLCHAIN_TYPE")
load("//executorch/private/actions:launch.bzl", "command_executable")
load("//executorch/private/checks:limits.bzl", "LIMIT_ATTRS", "limit_arguments", "read_limits")
load("//executorch/private/checks:messages.bzl", "display_label", "refuse")
load("//executorch/private/providers:executorch_program_info.bzl", "ExecutorchProgramInfo")

visibility("//executorch")

def _is_share(text):
    whole, _, fraction = text.partition(".")
    return (whole + fraction).isdigit() and float(text) <= 1.0

def _executorch_budget_test_impl(ctx):
    program = ctx.attr.program[ExecutorchProgramInfo]
    device = program.device
    own = read_limits(ctx)
    limits = struct(
        max_program_bytes = device.max_program_bytes if own.max_program_bytes == None else own.max_program_bytes,
        max_planned_bytes = device.max_planned_bytes if own.max_planned_bytes == None else own.max_planned_bytes,
        operators = own.operators or device.operators,
    )
    arguments = limit_arguments(limits)
    share = ctx.attr.min_delegated_share
    if share:
        if not _is_share(share):
            refuse(ctx, "min_delegated_share = {} is not a share.".format(share), "Write a number from 0 to 1, for example 0.9.")
        arguments = ["--min-delegated-share", share] + arguments
    if not arguments:
        refuse(
            ctx,
            "No limit is set, and {} has none, so that this test could not fail.".format(display_label(device.label)),
            "Write max_program_bytes, max_planned_bytes, min_delegated_share, allowed_operators or runtime_operators.",
        )
    arguments = ["--manifest", program.manifest] + arguments
    if limits.operators and not own.operators:
        arguments += ["--device", display_label(device.label)]
    return [
        command_executable(ctx, "budget", arguments),
        testing.ExecutionInfo({"block-network": "1"}),
    ]

executorch_budget_test = rule(
    implementation = _executorch_budget_test_impl,
    attrs = COMMAND_ATTRS | LIMIT_ATTRS | {
        "min_delegated_share": attr.string(doc = "0 to 1; empty does not limit."),
        "program": attr.label(
            mandatory = True,
            providers = [ExecutorchProgramInfo],
            doc = "The `executorch_lower` to test.",
        ),
    },
    doc = "Checks a program against limits.",
    test = True,
    toolchains = [TOOLCHAIN_TYPE],
)
