"""The rule `executorch_tool`: a subcommand of the command line as a target for `bazel run`."""

load("//executorch/private/actions:command.bzl", "COMMAND_ATTRS", "TOOLCHAIN_TYPE")
load("//executorch/private/actions:launch.bzl", "command_executable")

visibility("//tools")

def _executorch_tool_impl(ctx):
    return [command_executable(ctx, ctx.attr.command, [])]

executorch_tool = rule(
    implementation = _executorch_tool_impl,
    attrs = COMMAND_ATTRS | {
        "command": attr.string(
            mandatory = True,
            doc = "The subcommand. Paths that a user gives it are relative to BUILD_WORKING_DIRECTORY.",
        ),
    },
    doc = "Runs a subcommand with the toolchain's Python; works from a workspace outside of this one.",
    executable = True,
    toolchains = [TOOLCHAIN_TYPE],
)
