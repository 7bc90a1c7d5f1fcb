"""Analysis tests of what apps consume: assets, embedded programs, operators, budgets, models."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load(
    "//executorch:defs.bzl",
    "executorch_assets",
    "executorch_budget_test",
    "executorch_device",
    "executorch_export",
    "executorch_lower",
    "executorch_model",
    "executorch_operators",
)
load("//executorch:providers.bzl", "ExecutorchAssetsInfo", "ExecutorchProgramInfo")
load("//executorch/private/rules:cc_embed.bzl", "executorch_cc_embed_files")
load(":helpers.bzl", "action_of", "basenames", "refusal_test")

_PHONE = "//executorch/devices:android_arm64_xnnpack"
_ARM64 = "//executorch/devices:host_arm64_xnnpack"
_PC = "//executorch/devices:host_x86_64_xnnpack"
_ANY = "//executorch/devices:portable"

# What an app is built for, and the device whose program it gets.
_CHOSEN = {
    "android_arm64": "android_arm64_xnnpack",
    "ios_x86_32": "portable",
    "linux_arm64": "host_arm64_xnnpack",
    "linux_x86_64": "host_x86_64_xnnpack",
}

def _split_impl(_settings, _attr):
    return {name: {"//command_line_option:platforms": ["//tests/starlark:" + name]} for name in _CHOSEN}

_split = transition(
    implementation = _split_impl,
    inputs = [],
    outputs = ["//command_line_option:platforms"],
)

AppInfo = provider(
    "An app for several platforms.",
    fields = {
        "assets": "dict from the platform to ExecutorchAssetsInfo.",
        "files": "dict from the platform to the files of the folder.",
    },
)

def _app_impl(ctx):
    parts = ctx.split_attr.assets
    return [AppInfo(
        assets = {name: target[ExecutorchAssetsInfo] for name, target in parts.items()},
        files = {name: target[DefaultInfo].files.to_list() for name, target in parts.items()},
    )]

_app = rule(
    implementation = _app_impl,
    attrs = {
        "assets": attr.label(cfg = _split),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)

def _app_test_impl(ctx):
    env = analysistest.begin(ctx)
    app = analysistest.target_under_test(env)[AppInfo]
    asserts.equals(env, _CHOSEN, {name: assets.program.device.label.name for name, assets in app.assets.items()})
    for name, assets in app.assets.items():
        asserts.equals(
            env,
            ["chat_template.jinja", "manifest.json", "model.pte", "tokenizer.json", "tokenizer_config.json"],
            basenames(app.files[name]),
        )
        asserts.equals(env, "tests/starlark/app_model", assets.folder)
        for file in app.files[name]:
            asserts.equals(env, assets.folder, file.short_path.rpartition("/")[0])
        asserts.equals(env, "model.pte", assets.model.basename)
        asserts.equals(env, None, assets.data)
        asserts.equals(env, "tokenizer.json", assets.tokenizer.basename)
    exports = {}
    for assets in app.assets.values():
        exports.setdefault(assets.program.exported.label.name, []).append(assets.program.device.label.name)
    asserts.equals(
        env,
        {
            "app_model_export": ["portable"],
            "app_model_export_custom_ops": ["android_arm64_xnnpack", "host_arm64_xnnpack", "host_x86_64_xnnpack"],
        },
        {name: sorted(devices) for name, devices in exports.items()},
    )
    return analysistest.end(env)

_app_test = analysistest.make(_app_test_impl)

def _lowerings_test_impl(ctx):
    env = analysistest.begin(ctx)
    lowered = [a for a in analysistest.target_actions(env) if a.mnemonic == "ExecutorchLower"]
    programs = [
        file.basename
        for action in lowered
        for file in action.outputs.to_list()
        if file.extension == "pte"
    ]
    asserts.equals(env, ctx.attr.programs, sorted(programs))
    return analysistest.end(env)

_lowerings_test = analysistest.make(
    _lowerings_test_impl,
    attrs = {"programs": attr.string_list(mandatory = True)},
)

def _program_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    program = target[ExecutorchProgramInfo]
    name = program.label.name
    asserts.equals(env, [name + ".pte"], basenames(target[DefaultInfo].files))
    asserts.equals(env, [name + ".manifest.json"], basenames(target[OutputGroupInfo].manifest))
    asserts.equals(env, [name + ".operators.yaml"], basenames(target[OutputGroupInfo].operators))
    asserts.equals(env, ctx.attr.device, program.device.label.name)
    asserts.equals(env, ctx.attr.export, program.exported.label.name)
    return analysistest.end(env)

_program_test = analysistest.make(
    _program_test_impl,
    attrs = {
        "device": attr.string(mandatory = True),
        "export": attr.string(mandatory = True),
    },
)

def _check_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    checked = ctx.attr.checked
    asserts.equals(env, [checked] if checked else [], basenames(target[OutputGroupInfo]._validation))
    return analysistest.end(env)

_check_test = analysistest.make(
    _check_test_impl,
    attrs = {"checked": attr.string(doc = "What the check writes; empty for no check.")},
)

def _checks_test_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.equals(
        env,
        [["pc_of_many_operators.manifest.json"], ["phone_of_few_operators.manifest.json"]],
        sorted([
            basenames(action.inputs)
            for action in analysistest.target_actions(env)
            if action.mnemonic == "ExecutorchCheck"
        ]),
        "a check reads the manifest of its device and nothing else",
    )
    return analysistest.end(env)

_checks_test = analysistest.make(_checks_test_impl)

def _budget_test_impl(ctx):
    env = analysistest.begin(ctx)
    lines = [
        action.content.splitlines()
        for action in analysistest.target_actions(env)
        if [file for file in action.outputs.to_list() if file.extension == "params"]
    ][0]
    asserts.equals(env, "--manifest", lines[3])
    asserts.equals(env, ctx.attr.arguments, lines[5:])
    return analysistest.end(env)

_budget_test = analysistest.make(
    _budget_test_impl,
    attrs = {"arguments": attr.string_list(mandatory = True)},
)

def _external_data_test_impl(ctx):
    env = analysistest.begin(ctx)
    assets = analysistest.target_under_test(env)[ExecutorchAssetsInfo]
    asserts.equals(env, "model.ptd", assets.data.basename)
    asserts.equals(env, None, assets.tokenizer)
    asserts.equals(env, ["manifest.json", "model.ptd", "model.pte"], basenames(assets.files))
    return analysistest.end(env)

_external_data_test = analysistest.make(_external_data_test_impl)

def _operators_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    action = action_of(env, "ExecutorchOperators")
    asserts.equals(env, ["operators.yaml"], basenames(target[DefaultInfo].files))
    asserts.equals(env, ["lower.pte", "portable.pte"], basenames(action.inputs))
    return analysistest.end(env)

_operators_test = analysistest.make(_operators_test_impl)

def _platforms():
    for name in _CHOSEN:
        os, _, cpu = name.partition("_")
        native.platform(
            name = name,
            constraint_values = [
                "@platforms//cpu:" + cpu,
                "@platforms//os:" + os,
            ],
        )

def _model(name, **kwargs):
    executorch_model(
        name = name,
        max_cache_len = 64,
        model = ":hf_safetensors",
        tags = ["manual"],
        **kwargs
    )

def apps_test_suite(name):
    """Declares the tests.

    Args:
        name: name of the test suite.
    """
    _platforms()
    _model("app_model", devices = [_PHONE, _ARM64, _PC, _ANY])
    _app(
        name = "app_for_platforms",
        assets = ":app_model",
        tags = ["manual"],
    )
    _app_test(
        name = "app_for_platforms_test",
        size = "small",
        target_under_test = ":app_for_platforms",
    )
    _lowerings_test(
        name = "devices_that_agree_test",
        size = "small",
        programs = ["android_arm64_xnnpack.pte", "portable.pte"],
        target_under_test = ":app_model_lowerings",
    )
    _program_test(
        name = "program_of_a_device_test",
        size = "small",
        device = "host_x86_64_xnnpack",
        export = "app_model_export_custom_ops",
        target_under_test = ":app_model_host_x86_64_xnnpack",
    )

    # What a device has for a program does not change the program.
    executorch_device(
        name = "small_phone",
        backend = "xnnpack",
        max_planned_bytes = 1000000,
        max_program_bytes = 2000000,
    )
    executorch_device(
        name = "phone_of_few_operators",
        allowed_operators = ["aten::*"],
        backend = "xnnpack",
    )
    executorch_device(
        name = "pc_of_many_operators",
        allowed_operators = ["aten::*", "llama::*.out"],
        backend = "portable",
    )
    _model("limited_model", devices = [_PHONE, ":small_phone", ":phone_of_few_operators", ":pc_of_many_operators"])
    _lowerings_test(
        name = "limits_share_a_lowering_test",
        size = "small",
        programs = ["android_arm64_xnnpack.pte", "pc_of_many_operators.pte", "phone_of_few_operators.pte"],
        target_under_test = ":limited_model_lowerings",
    )
    for device, export in {
        "pc_of_many_operators": "limited_model_export_custom_ops",
        "phone_of_few_operators": "limited_model_export",
        "small_phone": "limited_model_export_custom_ops",
    }.items():
        _program_test(
            name = "graph_of_{}_test".format(device),
            size = "small",
            device = device,
            export = export,
            target_under_test = ":limited_model_" + device,
        )
    _model("plain_model", custom_ops = [], devices = [_PHONE])
    _program_test(
        name = "graph_without_custom_ops_test",
        size = "small",
        device = "android_arm64_xnnpack",
        export = "plain_model_export",
        target_under_test = ":plain_model_android_arm64_xnnpack",
    )
    _model("batch_model", batch_size = 2, devices = [_PHONE])
    _program_test(
        name = "graph_of_a_batch_test",
        size = "small",
        device = "android_arm64_xnnpack",
        export = "batch_model_export",
        target_under_test = ":batch_model_android_arm64_xnnpack",
    )

    _check_test(
        name = "operators_are_checked_test",
        size = "small",
        checked = "pc_of_many_operators.checked.txt",
        target_under_test = ":limited_model_pc_of_many_operators",
    )
    _checks_test(
        name = "checks_of_the_devices_test",
        size = "small",
        target_under_test = ":limited_model_lowerings",
    )
    _check_test(
        name = "unknown_operators_are_not_checked_test",
        size = "small",
        target_under_test = ":limited_model_small_phone",
    )
    for test, device, limits, arguments in [
        ("of_the_device", "small_phone", {}, ["--max-program-bytes", "2000000", "--max-planned-bytes", "1000000"]),
        (
            "of_the_runtime",
            "phone_of_few_operators",
            {},
            ["--allowed-operators", "aten::*", "--device", "//tests/starlark:phone_of_few_operators"],
        ),
        (
            "of_its_own",
            "small_phone",
            {"allowed_operators": ["aten::*"], "max_program_bytes": 5},
            ["--max-program-bytes", "5", "--max-planned-bytes", "1000000", "--allowed-operators", "aten::*"],
        ),
    ]:
        executorch_budget_test(
            name = "budget_" + test,
            program = ":limited_model_" + device,
            tags = ["manual"],
            **limits
        )
        _budget_test(
            name = "budget_{}_test".format(test),
            size = "small",
            arguments = arguments,
            target_under_test = ":budget_" + test,
        )

    # Two graphs: the options of one device differ.
    _model("two_graphs", devices = {
        _PHONE: {"max_seq_len": 16},
        _PC: {},
        _ANY: {},
    })
    _lowerings_test(
        name = "first_graph_test",
        size = "small",
        programs = ["android_arm64_xnnpack.pte"],
        target_under_test = ":two_graphs_lowerings",
    )
    _lowerings_test(
        name = "second_graph_test",
        size = "small",
        programs = ["host_x86_64_xnnpack.pte", "portable.pte"],
        target_under_test = ":two_graphs_lowerings_host_x86_64_xnnpack",
    )
    _program_test(
        name = "program_of_the_second_graph_test",
        size = "small",
        device = "portable",
        export = "two_graphs_export_host_x86_64_xnnpack",
        target_under_test = ":two_graphs_portable",
    )

    executorch_assets(
        name = "assets_external",
        programs = [":lower_external_any"],
        tags = ["manual"],
        without_tokenizer = True,
    )
    executorch_lower(
        name = "lower_external_any",
        device = _ANY,
        exported = ":export",
        external_data = True,
        tags = ["manual"],
    )
    _external_data_test(
        name = "assets_external_test",
        size = "small",
        target_under_test = ":assets_external",
    )
    executorch_operators(
        name = "operators",
        programs = [":lower", ":app_model_portable"],
        tags = ["manual"],
    )
    _operators_test(
        name = "operators_test",
        size = "small",
        target_under_test = ":operators.shared",
    )

    executorch_device(
        name = "board",
        backend = "portable",
        constraint_values = [
            "@platforms//cpu:riscv64",
            "@platforms//os:none",
        ],
    )
    executorch_lower(
        name = "lower_board",
        device = ":board",
        exported = ":export",
        tags = ["manual"],
    )
    executorch_export(
        name = "export_no_tokenizer",
        max_cache_len = 64,
        model = ":hf_sharded",
        tags = ["manual"],
    )
    executorch_lower(
        name = "lower_any",
        device = _ANY,
        exported = ":export_no_tokenizer",
        tags = ["manual"],
    )
    refusal_test(
        name = "assets_none_fits_test",
        rule = executorch_assets,
        programs = [":lower_board"],
        words = [
            "No program fits the platform ",
            "known of it: @platforms//cpu:",
            "//tests/starlark:lower_board for //tests/starlark:board, which wants @platforms//cpu:riscv64, @platforms//os:none; " +
            "the platform does not have @platforms//cpu:riscv64, @platforms//os:none",
            "Add to programs an executorch_lower for a device whose constraint_values this platform has",
        ],
    )
    refusal_test(
        name = "assets_two_fit_test",
        rule = executorch_assets,
        programs = [":lower_board", ":lower_any", ":lower_external_any"],
        words = [
            "2 programs fit the platform ",
            "//tests/starlark:lower_any for //executorch/devices:portable, which wants nothing of a platform",
            "//tests/starlark:lower_external_any for ",
            "Keep one of them in programs",
        ],
    )
    refusal_test(
        name = "assets_no_tokenizer_test",
        rule = executorch_assets,
        programs = [":lower_any"],
        words = ["//tests/starlark:hf_sharded has no tokenizer", "without_tokenizer = True"],
    )
    refusal_test(
        name = "assets_empty_test",
        rule = executorch_assets,
        programs = [],
        words = ["programs is empty."],
    )
    refusal_test(
        name = "operators_empty_test",
        rule = executorch_operators,
        programs = [],
        words = ["programs is empty."],
    )

    for test, attributes, words in [
        ("embed_external", {"program": ":lower_external_any"}, "keeps its weights outside of the program"),
        ("embed_symbol", {"program": ":lower_any", "symbol": "2nd"}, "symbol = \"2nd\" is not an identifier of C."),
        ("embed_alignment", {"alignment": 24, "program": ":lower_any"}, "alignment = 24 is not a power of two of at least 16"),
    ]:
        refusal_test(
            name = test + "_test",
            rule = executorch_cc_embed_files,
            header = test + ".h",
            source = test + ".c",
            words = [words],
            **({"alignment": 16, "symbol": test} | attributes)
        )

    refusal_test(
        name = "budget_without_limit_test",
        rule = executorch_budget_test,
        program = ":lower_any",
        words = ["No limit is set, and //executorch/devices:portable has none, so that this test could not fail.", "max_program_bytes"],
    )
    refusal_test(
        name = "budget_share_test",
        rule = executorch_budget_test,
        min_delegated_share = 95,
        program = ":lower_any",
        words = ["min_delegated_share = 95 is not a share.", "0.9"],
    )
    refusal_test(
        name = "budget_bytes_test",
        rule = executorch_budget_test,
        max_program_bytes = "2MB",
        program = ":lower_any",
        words = ["max_program_bytes = 2MB is not a number of bytes."],
    )

    native.test_suite(
        name = name,
        tests = [
            "app_for_platforms_test",
            "assets_empty_test",
            "assets_external_test",
            "assets_no_tokenizer_test",
            "assets_none_fits_test",
            "assets_two_fit_test",
            "budget_bytes_test",
            "budget_of_its_own_test",
            "budget_of_the_device_test",
            "budget_of_the_runtime_test",
            "budget_share_test",
            "budget_without_limit_test",
            "checks_of_the_devices_test",
            "devices_that_agree_test",
            "embed_alignment_test",
            "embed_external_test",
            "embed_symbol_test",
            "first_graph_test",
            "graph_of_a_batch_test",
            "graph_of_pc_of_many_operators_test",
            "graph_of_phone_of_few_operators_test",
            "graph_of_small_phone_test",
            "graph_without_custom_ops_test",
            "limits_share_a_lowering_test",
            "operators_are_checked_test",
            "operators_empty_test",
            "operators_test",
            "program_of_a_device_test",
            "program_of_the_second_graph_test",
            "second_graph_test",
            "unknown_operators_are_not_checked_test",
        ],
    )
