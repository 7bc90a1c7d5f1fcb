"""Analysis tests of what a backend takes: values of options, kinds of programs, calibration."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("//executorch:defs.bzl", "executorch_device", "executorch_export", "executorch_lower", "hf_model")
load(":helpers.bzl", "action_of", "argument_after", "basenames", "empty_files", "refusal_test")

def _calibration_test_impl(ctx):
    env = analysistest.begin(ctx)
    action = action_of(env, "ExecutorchLower")
    given = argument_after(action, "--calibration")
    asserts.true(env, given != None and given.endswith("/samples.safetensors"), "--calibration is {}".format(given))
    asserts.true(env, "samples.safetensors" in basenames(action.inputs), "the samples are no input")
    return analysistest.end(env)

_calibration_test = analysistest.make(_calibration_test_impl)

def _images_test_impl(ctx):
    env = analysistest.begin(ctx)
    action = [
        action
        for action in analysistest.target_actions(env)
        if [file for file in action.outputs.to_list() if file.basename.endswith(".options.json")]
    ][0]
    asserts.equals(
        env,
        {
            "batch_size": 1,
            "dtype": "float32",
            "dynamic_seq_len": True,
            "image_size": 32,
            "max_seq_len": 0,
            "task": "image-classification",
        },
        json.decode(action.content),
    )
    return analysistest.end(env)

_images_test = analysistest.make(_images_test_impl)

def backend_test_suite(name):
    """Declares the tests.

    Args:
        name: name of the test suite.
    """
    hf_model(
        name = "hf_images",
        srcs = [":image_files"],
        tags = ["manual"],
        task = "image-classification",
    )
    empty_files(
        name = "image_files",
        names = ["images/config.json", "images/model.safetensors"],
        tags = ["manual"],
    )
    executorch_export(
        name = "export_images",
        image_size = 32,
        model = ":hf_images",
        tags = ["manual"],
    )
    executorch_export(
        name = "export_texts",
        max_cache_len = 64,
        model = ":hf_sharded",
        tags = ["manual"],
    )
    empty_files(
        name = "samples",
        names = ["samples.safetensors"],
        tags = ["manual"],
    )
    executorch_device(
        name = "npu",
        backend = "ethos_u",
        options = {"target": "ethos-u85-256"},
        packages = ":packages",
        tags = ["manual"],
    )
    executorch_device(
        name = "intel",
        backend = "openvino",
        packages = ":packages",
        tags = ["manual"],
    )
    executorch_lower(
        name = "lower_calibrated",
        calibration = ":samples",
        device = ":npu",
        exported = ":export_images",
        tags = ["manual"],
    )
    _calibration_test(
        name = "calibration_test",
        size = "small",
        target_under_test = ":lower_calibrated.shared",
    )
    _images_test(
        name = "export_images_test",
        size = "small",
        target_under_test = ":export_images.shared",
    )

    refusal_test(
        name = "calibration_unused_test",
        rule = executorch_lower,
        calibration = ":samples",
        device = "//executorch/devices:portable",
        exported = ":export_images",
        words = ["calibration is set, and nothing of a lowering for //executorch/devices:portable is calibrated."],
    )
    for device, option in {
        "qualcomm_sm8650": "\"soc\": \"SM8650\"",
        "qualcomm_sm8750": "\"soc\": \"SM8750\"",
        "samsung_e9955": "\"chipset\": \"E9955\"",
        "samsung_e9965": "\"chipset\": \"E9965\"",
    }.items():
        refusal_test(
            name = "lower_{}_test".format(device),
            rule = executorch_lower,
            device = "//executorch/devices:" + device,
            exported = ":export_images",
            words = [
                "needs the vendor's SDK, and //executorch/devices:{} does not say where it is; it is never downloaded.".format(device),
                "Write an executorch_device of your own with options = {" + option + ", \"sdk_root\": \"/path/of/the/sdk\"}",
            ],
        )
    executorch_device(
        name = "int8_cpu",
        backend = "xnnpack",
        options = {"scheme": "int8"},
        tags = ["manual"],
    )
    executorch_device(
        name = "dynamic_int8_cpu",
        backend = "xnnpack",
        options = {"scheme": "int8_dynamic"},
        tags = ["manual"],
    )
    executorch_export(
        name = "export_8da4w",
        max_cache_len = 64,
        model = ":hf_sharded",
        quantization = "8da4w",
        tags = ["manual"],
    )
    refusal_test(
        name = "calibration_missing_test",
        rule = executorch_lower,
        device = ":int8_cpu",
        exported = ":export_images",
        words = [
            "The scheme \"int8\" of //tests/starlark:int8_cpu takes its ranges from inputs, and none are given.",
            "Write calibration = ",
        ],
    )
    refusal_test(
        name = "calibration_for_dynamic_test",
        rule = executorch_lower,
        calibration = ":samples",
        device = ":dynamic_int8_cpu",
        exported = ":export_images",
        words = ["calibration is set, and nothing of a lowering for //tests/starlark:dynamic_int8_cpu is calibrated."],
    )
    refusal_test(
        name = "calibration_of_text_test",
        rule = executorch_lower,
        calibration = ":samples",
        device = ":int8_cpu",
        exported = ":export_texts",
        words = ["//tests/starlark:export_texts generates text, and the scheme \"int8\"", "\"int8_dynamic\" of xnnpack"],
    )
    refusal_test(
        name = "quantized_twice_test",
        rule = executorch_lower,
        device = ":dynamic_int8_cpu",
        exported = ":export_8da4w",
        words = ["//tests/starlark:export_8da4w has quantized weights", "would quantize them again", "Export without quantization"],
    )
    refusal_test(
        name = "lower_generation_test",
        rule = executorch_lower,
        device = ":npu",
        exported = ":export_texts",
        words = ["//tests/starlark:export_texts generates text, and the backend ethos_u is for programs without a cache."],
    )
    refusal_test(
        name = "lower_dynamic_test",
        rule = executorch_lower,
        device = ":intel",
        exported = ":export_texts",
        words = [
            "The sequence length of //tests/starlark:export_texts varies, and the backend openvino takes fixed shapes only.",
            "Export with dynamic_seq_len = False",
        ],
    )
    refusal_test(
        name = "device_option_value_test",
        rule = executorch_device,
        backend = "coreml",
        options = {"compute_units": "npu"},
        packages = ":packages",
        words = ["options[\"compute_units\"] = \"npu\" is not known.", "\"cpu_and_ne\""],
    )
    refusal_test(
        name = "export_images_cache_test",
        rule = executorch_export,
        max_cache_len = 8,
        model = ":hf_images",
        words = ["max_cache_len is set, and the task of //tests/starlark:hf_images is image-classification.", "Remove it."],
    )
    refusal_test(
        name = "export_image_size_test",
        rule = executorch_export,
        image_size = 32,
        max_cache_len = 8,
        model = ":hf_sharded",
        words = ["image_size is set, and the task of //tests/starlark:hf_sharded is text-generation."],
    )

    native.test_suite(
        name = name,
        tests = [
            "calibration_for_dynamic_test",
            "calibration_missing_test",
            "calibration_of_text_test",
            "calibration_test",
            "calibration_unused_test",
            "device_option_value_test",
            "export_image_size_test",
            "export_images_cache_test",
            "export_images_test",
            "lower_dynamic_test",
            "lower_generation_test",
            "lower_qualcomm_sm8650_test",
            "lower_qualcomm_sm8750_test",
            "lower_samsung_e9955_test",
            "lower_samsung_e9965_test",
            "quantized_twice_test",
        ],
    )
