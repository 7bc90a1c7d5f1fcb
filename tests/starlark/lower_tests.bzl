"""Analysis tests of `executorch_lower` and `executorch_device`."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("//executorch:defs.bzl", "executorch_device", "executorch_export", "executorch_lower")
load("//executorch:providers.bzl", "ExecutorchDeviceInfo", "ExecutorchProgramInfo")
load("//executorch:toolchain.bzl", "executorch_toolchain")
load(":helpers.bzl", "action_of", "argument_after", "basenames", "empty_files", "refusal_test")

def _lower_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    program = target[ExecutorchProgramInfo]
    action = action_of(env, "ExecutorchLower")

    asserts.equals(env, ["lower.pte"], basenames(target[DefaultInfo].files))
    asserts.equals(env, ["lower.manifest.json"], basenames(target[OutputGroupInfo].manifest))
    asserts.equals(env, ["lower.report.md"], basenames(target[OutputGroupInfo].report))
    asserts.equals(env, ["lower.manifest.json", "lower.pte", "lower.report.md", "lower.timings.json"], basenames(action.outputs))
    asserts.equals(env, ["lower.timings.json"], basenames(target[OutputGroupInfo].timings))
    asserts.equals(
        env,
        [
            "config.json",
            "export.json",
            "export.pt2",
            "lower.options.json",
            "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors",
            "model.json",
            "model.safetensors.index.json",
        ],
        [name.replace("export_sharded.", "export.") for name in basenames(action.inputs)],
    )
    asserts.equals(env, program.program.path, argument_after(action, "--out-program"))
    asserts.equals(env, program.manifest.path, argument_after(action, "--out-manifest"))
    asserts.equals(env, program.report.path, argument_after(action, "--out-report"))
    asserts.equals(env, program.exported.program.path, argument_after(action, "--exported"))
    asserts.equals(env, program.exported.signature.path, argument_after(action, "--signature"))
    asserts.equals(env, program.model.description.path, argument_after(action, "--model-description"))
    asserts.equals(env, None, argument_after(action, "--out-data"))
    asserts.equals(env, None, program.data)
    asserts.equals(env, "xnnpack", program.device.backend)
    return analysistest.end(env)

_lower_test = analysistest.make(_lower_test_impl)

def _external_data_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    action = action_of(env, "ExecutorchLower")
    asserts.equals(env, ["lower_external.pte", "lower_external.ptd"], [file.basename for file in target[DefaultInfo].files.to_list()])
    asserts.equals(env, target[ExecutorchProgramInfo].data.path, argument_after(action, "--out-data"))
    return analysistest.end(env)

_external_data_test = analysistest.make(_external_data_test_impl)

def _options_test_impl(ctx):
    env = analysistest.begin(ctx)
    action = [
        action
        for action in analysistest.target_actions(env)
        if [file for file in action.outputs.to_list() if file.basename.endswith(".options.json")]
    ][0]
    asserts.equals(
        env,
        {
            "allow_noncanonical": False,
            "allow_undelegated": True,
            "allow_unquantized": False,
            "backend": "xnnpack",
            "backend_options": {"per_op_mode": True},
            "external_data": False,
        },
        json.decode(action.content),
    )
    return analysistest.end(env)

_options_test = analysistest.make(_options_test_impl)

def _device_test_impl(ctx):
    env = analysistest.begin(ctx)
    device = analysistest.target_under_test(env)[ExecutorchDeviceInfo]
    asserts.equals(env, "xnnpack", device.backend)
    asserts.equals(env, {}, device.options)
    asserts.equals(
        env,
        [Label("@platforms//cpu:aarch64"), Label("@platforms//os:android")],
        device.constraint_values,
    )
    return analysistest.end(env)

_device_test = analysistest.make(_device_test_impl)

def _packages_test_impl(ctx):
    env = analysistest.begin(ctx)
    action = action_of(env, "ExecutorchLower")
    asserts.true(env, action.argv[0].endswith("tests/starlark/packages.sh"), "the launcher is " + action.argv[0])
    names = basenames(action.inputs)
    asserts.true(env, "packages.sh" in names and "packages.json" in names, "launcher or marker is no input")
    return analysistest.end(env)

_packages_test = analysistest.make(_packages_test_impl)

def lower_test_suite(name):
    """Declares the tests of `executorch_lower` and `executorch_device`.

    Args:
        name: name of the test suite.
    """
    device = "//executorch/devices:host_x86_64_xnnpack"
    executorch_export(
        name = "export_sharded",
        max_cache_len = 64,
        model = ":hf_sharded",
        tags = ["manual"],
    )
    executorch_export(
        name = "export_bfloat16",
        dtype = "bfloat16",
        max_cache_len = 64,
        model = ":hf_sharded",
        tags = ["manual"],
    )
    executorch_lower(
        name = "lower",
        device = device,
        exported = ":export_sharded",
        tags = ["manual"],
    )
    executorch_lower(
        name = "lower_external",
        device = device,
        exported = ":export_sharded",
        external_data = True,
        tags = ["manual"],
    )
    executorch_device(
        name = "operator_by_operator",
        backend = "xnnpack",
        options = {"per_op_mode": True},
    )
    executorch_lower(
        name = "lower_options",
        allow_undelegated = True,
        device = ":operator_by_operator",
        exported = ":export_bfloat16",
        tags = ["manual"],
    )
    empty_files(
        name = "packages_launcher",
        names = ["packages.sh"],
        tags = ["manual"],
    )
    empty_files(
        name = "packages_marker",
        names = ["packages.json"],
        tags = ["manual"],
    )
    executorch_toolchain(
        name = "packages",
        launcher = ":packages_launcher",
        marker = ":packages_marker",
        tags = ["manual"],
    )
    executorch_device(
        name = "with_packages",
        backend = "portable",
        packages = ":packages",
        tags = ["manual"],
    )
    executorch_lower(
        name = "lower_packages",
        device = ":with_packages",
        exported = ":export_sharded",
        tags = ["manual"],
    )
    _packages_test(
        name = "lower_packages_test",
        size = "small",
        target_under_test = ":lower_packages.shared",
    )
    _lower_test(
        name = "lower_test",
        size = "small",
        target_under_test = ":lower.shared",
    )
    _external_data_test(
        name = "lower_external_test",
        size = "small",
        target_under_test = ":lower_external.shared",
    )
    _options_test(
        name = "lower_options_test",
        size = "small",
        target_under_test = ":lower_options.shared",
    )
    _device_test(
        name = "device_test",
        size = "small",
        target_under_test = "//executorch/devices:android_arm64_xnnpack",
    )

    refusal_test(
        name = "lower_bfloat16_test",
        rule = executorch_lower,
        device = device,
        exported = ":export_bfloat16",
        words = [
            "//tests/starlark:export_bfloat16 has dtype bfloat16, of which the backend xnnpack takes nothing.",
            "Export with dtype = \"float32\" or \"float16\"",
            "allow_undelegated = True",
        ],
    )
    refusal_test(
        name = "lower_no_external_data_test",
        rule = executorch_lower,
        device = "//executorch/devices:host_x86_64_openvino",
        exported = ":export_sharded",
        external_data = True,
        words = [
            "external_data = True, and the backend openvino compiles the weights into its delegates",
            "Remove it, or choose a device of one of the backends mlx, portable, vulkan, webgpu, xnnpack.",
        ],
    )
    executorch_export(
        name = "export_8w",
        max_cache_len = 64,
        model = ":hf_sharded",
        quantization = "8w",
        quantization_embedding = "8w",
        tags = ["manual"],
    )
    refusal_test(
        name = "lower_scheme_test",
        rule = executorch_lower,
        device = device,
        exported = ":export_8w",
        words = [
            "//tests/starlark:export_8w has quantization = \"8w\", for which the backend xnnpack has no kernels.",
            "Export with quantization = \"8da4w\" or \"8da8w\"",
        ],
    )
    executorch_export(
        name = "export_groups_of_24",
        max_cache_len = 64,
        model = ":hf_sharded",
        quantization = "8da4w",
        quantization_group_size = 24,
        tags = ["manual"],
    )
    refusal_test(
        name = "lower_group_size_test",
        rule = executorch_lower,
        device = device,
        exported = ":export_groups_of_24",
        words = [
            "//tests/starlark:export_groups_of_24 has quantization_group_size = 24, and the backend xnnpack takes groups of 32 weights or multiples of it.",
            "Export with quantization_group_size = 32",
        ],
    )
    refusal_test(
        name = "lower_no_schemes_test",
        rule = executorch_lower,
        device = "//executorch/devices:portable",
        exported = ":export_8w",
        words = ["the backend portable has no kernels.", "Export without quantization"],
    )
    refusal_test(
        name = "device_unknown_backend_test",
        rule = executorch_device,
        backend = "xnpack",
        words = ["backend = \"xnpack\" is not known.", "\"portable\"", "\"xnnpack\""],
    )
    refusal_test(
        name = "device_unknown_option_test",
        rule = executorch_device,
        backend = "xnnpack",
        options = {"compute_units": "all"},
        words = ["The backend xnnpack has no option \"compute_units\".", "It takes non_static_weights, per_op_mode, scheme."],
    )
    refusal_test(
        name = "device_no_options_test",
        rule = executorch_device,
        backend = "portable",
        options = {"per_op_mode": True},
        words = ["The backend portable has no option \"per_op_mode\".", "It takes no options."],
    )
    refusal_test(
        name = "device_option_type_test",
        rule = executorch_device,
        backend = "xnnpack",
        options = {"per_op_mode": "yes"},
        words = ["The option \"per_op_mode\" of the backend xnnpack is a bool, not \"yes\"."],
    )

    native.test_suite(
        name = name,
        tests = [
            "device_no_options_test",
            "device_option_type_test",
            "device_test",
            "device_unknown_backend_test",
            "device_unknown_option_test",
            "lower_bfloat16_test",
            "lower_external_test",
            "lower_no_external_data_test",
            "lower_group_size_test",
            "lower_no_schemes_test",
            "lower_options_test",
            "lower_packages_test",
            "lower_scheme_test",
            "lower_test",
        ],
    )
