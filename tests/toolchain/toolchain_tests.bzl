"""The rule executorch_toolchain, and which toolchain targets get."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("//executorch:toolchain.bzl", "EXECUTORCH_TOOLCHAIN_TYPE", "ExecutorchToolchainInfo", "executorch_toolchain")
load("//tests/starlark:helpers.bzl", "empty_files")

visibility("private")

_VERSIONS = {"executorch": "1.4.0"}

def _fields_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    info = target[ExecutorchToolchainInfo]
    asserts.equals(env, "launcher.sh", info.launcher.basename)
    asserts.equals(env, "marker.json", info.marker.basename)
    asserts.equals(env, _VERSIONS, info.versions)
    asserts.equals(
        env,
        sorted(["launcher.sh", "marker.json"] + ctx.attr.packages),
        sorted([file.basename for file in info.files.to_list()]),
    )
    asserts.equals(env, ctx.attr.execution_requirements, info.execution_requirements)

    # Rules read the toolchain itself; the provider is for everyone else.
    toolchain = target[platform_common.ToolchainInfo]
    for field in ["launcher", "marker", "versions", "files", "execution_requirements"]:
        asserts.equals(env, getattr(info, field), getattr(toolchain, field))
    return analysistest.end(env)

_fields_test = analysistest.make(
    _fields_test_impl,
    attrs = {
        "execution_requirements": attr.string_dict(),
        "packages": attr.string_list(),
    },
)

def _launcher_impl(ctx):
    toolchain = ctx.toolchains[EXECUTORCH_TOOLCHAIN_TYPE]
    return [DefaultInfo(
        files = depset([toolchain.launcher]),
        runfiles = ctx.runfiles(transitive_files = toolchain.files),
    )]

# The launcher that an action on this machine would get.
launcher = rule(
    implementation = _launcher_impl,
    toolchains = [EXECUTORCH_TOOLCHAIN_TYPE],
)

def toolchain_test_suite(name):
    """Declares the tests and a suite of them.

    Args:
        name: name of the suite.
    """
    for file in ["launcher.sh", "marker.json", "package.py"]:
        empty_files(
            name = file.partition(".")[0] + "_file",
            names = [file],
        )
    executorch_toolchain(
        name = "undeclared",
        launcher = ":launcher_file",
        marker = ":marker_file",
        tags = ["manual"],
        versions = _VERSIONS,
    )
    _fields_test(
        name = "undeclared_packages_stay_on_this_machine_test",
        size = "small",
        execution_requirements = {"no-remote-exec": "1"},
        target_under_test = ":undeclared",
    )
    executorch_toolchain(
        name = "declared",
        files = [":package_file"],
        launcher = ":launcher_file",
        marker = ":marker_file",
        tags = ["manual"],
        versions = _VERSIONS,
    )
    _fields_test(
        name = "declared_packages_are_inputs_test",
        size = "small",
        packages = ["package.py"],
        target_under_test = ":declared",
    )
    native.test_suite(
        name = name,
        tests = [
            ":declared_packages_are_inputs_test",
            ":undeclared_packages_stay_on_this_machine_test",
        ],
    )
