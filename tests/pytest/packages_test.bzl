"""Tests in Python that need the packages of an optional group."""

load("//executorch:toolchain.bzl", "ExecutorchToolchainInfo")
load("//executorch/private/actions:launch.bzl", "runfile_path")

visibility("//...")

_SCRIPT = """\
#!/usr/bin/env bash
set -u
cd -- "${{RUNFILES_DIR:-$0.runfiles}}" || exit
export TMPDIR=${{TEST_TMPDIR:-/tmp}}
exec {launcher} {runner} {sources} {main} {tests} "$@"
"""

def _packages_test_impl(ctx):
    packages = ctx.attr.packages[ExecutorchToolchainInfo]
    tests = [file for file in ctx.files.srcs if file.basename.startswith("test_")]
    script = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(
        script,
        _SCRIPT.format(
            launcher = "./" + runfile_path(ctx, packages.launcher),
            main = runfile_path(ctx, ctx.file._main),
            runner = runfile_path(ctx, ctx.file._runner),
            sources = runfile_path(ctx, ctx.file._entry).rpartition("/")[0],
            tests = " ".join([runfile_path(ctx, file) for file in tests] + ctx.attr.options),
        ),
        is_executable = True,
    )
    return DefaultInfo(
        executable = script,
        runfiles = ctx.runfiles(
            ctx.files.srcs + [ctx.file._main, ctx.file._runner, ctx.file._entry],
            transitive_files = depset(transitive = [
                packages.files,
                ctx.attr._sources[DefaultInfo].files,
            ]),
        ),
    )

packages_test = rule(
    implementation = _packages_test_impl,
    attrs = {
        "srcs": attr.label_list(
            allow_files = [".py"],
            mandatory = True,
            doc = "Test files `test_*.py`, and `conftest.py` and helper modules beside them.",
        ),
        "options": attr.string_list(
            doc = "Further arguments of pytest.",
        ),
        "packages": attr.label(
            cfg = "exec",
            mandatory = True,
            providers = [ExecutorchToolchainInfo],
            doc = "A group with pytest, of `@executorch_toolchains`.",
        ),
        "_entry": attr.label(
            allow_single_file = True,
            default = "//python:main.py",
        ),
        "_main": attr.label(
            allow_single_file = True,
            default = "//tests/pytest:main.py",
        ),
        "_runner": attr.label(
            allow_single_file = True,
            default = "//tests/pytest:with_packages.py",
        ),
        "_sources": attr.label(
            default = "//python/rules_executorch:sources",
        ),
    },
    doc = "Runs pytest with the Python and the packages of a group, as `pytest_test` does with those of tests.",
    test = True,
)
