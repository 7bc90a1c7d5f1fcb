"""A tool that runs with the packages of a group."""

load("//executorch:toolchain.bzl", "ExecutorchToolchainInfo")

visibility("private")

_SCRIPT = """\
#!/usr/bin/env bash
runfiles=${{RUNFILES_DIR:-$0.runfiles}}
[[ $runfiles == /* ]] || runfiles=$PWD/$runfiles
exec "$runfiles/{launcher}" "$runfiles/{main}" "$@"
"""

def _runfile_path(ctx, file):
    if file.short_path.startswith("../"):
        return file.short_path[len("../"):]
    return "{}/{}".format(ctx.workspace_name, file.short_path)

def _packages_tool_impl(ctx):
    packages = ctx.attr.packages[ExecutorchToolchainInfo]
    script = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(
        script,
        _SCRIPT.format(
            launcher = _runfile_path(ctx, packages.launcher),
            main = _runfile_path(ctx, ctx.file.main),
        ),
        is_executable = True,
    )
    return DefaultInfo(
        executable = script,
        runfiles = ctx.runfiles([ctx.file.main], transitive_files = depset(transitive = [
            packages.files,
            ctx.attr._sources[DefaultInfo].files,
        ])),
    )

packages_tool = rule(
    implementation = _packages_tool_impl,
    attrs = {
        "main": attr.label(
            allow_single_file = [".py"],
            mandatory = True,
            doc = "The script.",
        ),
        "packages": attr.label(
            cfg = "exec",
            mandatory = True,
            providers = [ExecutorchToolchainInfo],
            doc = "A group of `@executorch_toolchains`.",
        ),
        "_sources": attr.label(default = "//python/rules_executorch:sources"),
    },
    doc = "Runs a script with the Python and the packages of a group, all backends' for example.",
    executable = True,
)
