"""An app for several platforms costs one export and one lowering, and has its files where it is built."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("//executorch:defs.bzl", "executorch_lower", "executorch_model", "executorch_operators", "executorch_release", "tiny_checkpoint")
load("//executorch:providers.bzl", "ExecutorchProgramInfo")
load(":helpers.bzl", "basenames")

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

def _found_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    folder = ctx.attr.folder_of[FolderInfo].path + "/tests/starlark/"
    groups = {
        name: target[OutputGroupInfo][name].to_list()
        for name in target[OutputGroupInfo]
        if not name.startswith("_")
    }
    asserts.equals(env, ctx.attr.groups, sorted(groups))
    asserts.equals(env, ctx.attr.files, basenames(target[DefaultInfo].files))
    runfiles = target[DefaultInfo].default_runfiles.files.to_list()
    for file in target[DefaultInfo].files.to_list():
        asserts.true(env, file in runfiles, file.path + " is no runfile")
    for file in target[DefaultInfo].files.to_list() + [file for group in groups.values() for file in group]:
        asserts.true(env, file.path.startswith(folder), "{} is not below {}".format(file.path, folder))
    asserts.equals(
        env,
        {"Symlink": None},
        {action.mnemonic: None for action in analysistest.target_actions(env)},
        "the work is done once, and not here",
    )
    return analysistest.end(env)

FolderInfo = provider("A folder of outputs.", fields = {"path": "Where the outputs of a configuration are."})

def _folder_of_impl(ctx):
    return [FolderInfo(path = ctx.bin_dir.path)]

_folder_of = rule(implementation = _folder_of_impl)

_found_test = analysistest.make(
    _found_test_impl,
    attrs = {
        "files": attr.string_list(mandatory = True),
        "folder_of": attr.label(default = ":folder_of"),
        "groups": attr.string_list(),
    },
)

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
        size = "small",
        target_under_test = ":app",
    )
    _folder_of(
        name = "folder_of",
        tags = ["manual"],
    )
    tiny_checkpoint(
        name = "found_checkpoint",
        config = "//models:tiny/llama/config.json",
        tags = ["manual"],
    )
    executorch_model(
        name = "found_model",
        devices = ["//executorch/devices:portable"],
        max_cache_len = 64,
        model = ":hf_safetensors",
        tags = ["manual"],
    )
    executorch_operators(
        name = "found_operators",
        programs = [":lower_for_app"],
        tags = ["manual"],
    )
    executorch_release(
        name = "found_release",
        programs = [":lower_for_app"],
        tags = ["manual"],
    )
    groups = ["manifest", "operators", "options", "provenance", "report", "sbom", "timings"]
    found = {
        "export": struct(files = ["export.json", "export.pt2"], groups = ["options", "timings"]),
        "found_checkpoint": struct(
            files = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"],
            groups = [],
        ),
        "found_model_portable": struct(files = ["found_model_portable.pte"], groups = groups),
        "found_operators": struct(files = ["found_operators.yaml"], groups = ["operators"]),
        "found_release": struct(files = ["found_release.tar"], groups = []),
        "lower_external": struct(files = ["lower_external.ptd", "lower_external.pte"], groups = groups),
        "lower_for_app": struct(files = ["lower_for_app.pte"], groups = groups),
    }
    for target, expected in found.items():
        _found_test(
            name = "found_{}_test".format(target),
            size = "small",
            files = expected.files,
            groups = expected.groups,
            target_under_test = ":" + target,
        )
    native.test_suite(
        name = name,
        tests = ["one_export_for_three_platforms_test"] + ["found_{}_test".format(target) for target in found],
    )
