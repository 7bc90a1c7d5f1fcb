"""An app for several platforms costs one export and one lowering."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("//executorch:defs.bzl", "executorch_lower")
load("//executorch:providers.bzl", "ExecutorchProgramInfo")

def _split_impl(_settings, _attr):
    return {
        mode + "_" + cpu: {
            "//command_line_option:compilation_mode": mode,
            "//command_line_option:cpu": cpu,
            "//command_line_option:platforms": ["//tests/starlark:" + cpu],
        }
        for cpu in ["arm64", "riscv64", "x86_64"]
        for mode in ["dbg", "opt"]
    }

_split = transition(
    implementation = _split_impl,
    inputs = [],
    outputs = [
        "//command_line_option:compilation_mode",
        "//command_line_option:cpu",
        "//command_line_option:platforms",
    ],
)

PartInfo = provider(
    "What an app has for one platform.",
    fields = {
        "folder": "Where its own outputs go.",
        "program": "ExecutorchProgramInfo.",
    },
)

AppInfo = provider("What an app has.", fields = {"parts": "List of PartInfo, one for each configuration."})

def _part_impl(ctx):
    return [PartInfo(folder = ctx.bin_dir.path, program = ctx.attr.program[ExecutorchProgramInfo])]

_part = rule(
    implementation = _part_impl,
    attrs = {"program": attr.label()},
)

def _app_impl(ctx):
    return [AppInfo(parts = [part[PartInfo] for part in ctx.attr.part])]

_app = rule(
    implementation = _app_impl,
    attrs = {
        "part": attr.label(cfg = _split),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)

def _one_export_test_impl(ctx):
    env = analysistest.begin(ctx)
    parts = analysistest.target_under_test(env)[AppInfo].parts
    asserts.equals(env, 6, len({part.folder: None for part in parts}), "three platforms, two compilation modes")
    programs = [part.program for part in parts]
    for what, files in {
        "checked checkpoints": [program.model.description for program in programs],
        "exports": [program.exported.program for program in programs],
        "lowerings": [program.program for program in programs],
    }.items():
        asserts.equals(env, 1, len({file: None for file in files}), what)
    return analysistest.end(env)

_one_export_test = analysistest.make(_one_export_test_impl)

def transitions_test_suite(name):
    """Declares the tests of the transitions.

    Args:
        name: name of the test suite.
    """
    native.platform(
        name = "arm64",
        constraint_values = [
            "@platforms//cpu:arm64",
            "@platforms//os:android",
        ],
    )
    native.platform(
        name = "riscv64",
        constraint_values = [
            "@platforms//cpu:riscv64",
            "@platforms//os:linux",
        ],
    )
    native.platform(
        name = "x86_64",
        constraint_values = [
            "@platforms//cpu:x86_64",
            "@platforms//os:linux",
        ],
    )
    executorch_lower(
        name = "lower_for_app",
        device = "//executorch/devices:portable",
        exported = ":export",
        tags = ["manual"],
    )
    _part(
        name = "app_part",
        program = ":lower_for_app",
        tags = ["manual"],
    )
    _app(
        name = "app",
        part = ":app_part",
        tags = ["manual"],
    )
    _one_export_test(
        name = "one_export_for_three_platforms_test",
        target_under_test = ":app",
    )
    native.test_suite(
        name = name,
        tests = ["one_export_for_three_platforms_test"],
    )
