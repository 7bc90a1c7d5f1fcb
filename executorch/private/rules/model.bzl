"""Rules behind the macro `executorch_model`; documented in //executorch:model.bzl."""

load("//executorch/private/actions:command.bzl", "COMMAND_ATTRS", "TOOLCHAIN_TYPE")
load("//executorch/private/actions:launch.bzl", "commands_executable")
load("//executorch/private/checks:messages.bzl", "display_label", "refuse")
load("//executorch/private/providers:executorch_program_info.bzl", "ExecutorchProgramInfo")
load("//executorch/private/providers:lowerings_info.bzl", "LoweringsInfo")
load("//executorch/private/rules:parity_test.bzl", "parity_arguments")
load("//executorch/private/tables:backends.bzl", "BACKENDS")

visibility("//executorch")

def _executorch_model_test_impl(ctx):
    commands = []
    for target in ctx.attr.lowerings:
        lowered = target[LoweringsInfo]
        for one in lowered.distinct:
            if BACKENDS[one.device.backend].runs_on_host:
                command, arguments = "parity", parity_arguments(one.files, one.exported, ctx.attr.tolerance)
            else:
                command, arguments = "inspect", [one.files.program]
            commands.append(struct(
                arguments = arguments,
                command = command,
                packages = one.device.packages if command == "parity" else None,
                title = "{}, {}".format(command, display_label(one.device.label)),
            ))
    return [
        commands_executable(ctx, commands),
        testing.ExecutionInfo({"block-network": "1"}),
    ]

executorch_model_test = rule(
    implementation = _executorch_model_test_impl,
    attrs = COMMAND_ATTRS | {
        "lowerings": attr.label_list(
            mandatory = True,
            providers = [LoweringsInfo],
            doc = "Each of their programs is tested once.",
        ),
        "tolerance": attr.string(doc = "See `executorch_parity_test`."),
    },
    doc = "Compares programs with eager where this machine has their runtime, and reads the others back.",
    test = True,
    toolchains = [TOOLCHAIN_TYPE],
)

def _executorch_host_program_impl(ctx):
    for target in ctx.attr.programs:
        if BACKENDS[target[ExecutorchProgramInfo].device.backend].runs_on_host:
            return [
                target[DefaultInfo],
                target[OutputGroupInfo],
                target[ExecutorchProgramInfo],
            ]
    return refuse(
        ctx,
        "None of the programs runs on this machine: they are for {}.".format(
            ", ".join([target[ExecutorchProgramInfo].device.backend for target in ctx.attr.programs]),
        ),
        "Add @rules_executorch//executorch/devices:host_x86_64_xnnpack to devices.",
    )

executorch_host_program = rule(
    implementation = _executorch_host_program_impl,
    attrs = {
        "programs": attr.label_list(mandatory = True, providers = [ExecutorchProgramInfo]),
    },
    doc = "The first of several programs that this machine's runtime runs.",
    provides = [ExecutorchProgramInfo],
)
