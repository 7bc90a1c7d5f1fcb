"""Analysis tests of `executorch_export`."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("//executorch:defs.bzl", "executorch_export")
load("//executorch:providers.bzl", "ExportedProgramInfo")
load(":helpers.bzl", "action_of", "argument_after", "basenames", "refusal_test")

def _export_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    exported = target[ExportedProgramInfo]
    action = action_of(env, "ExecutorchExport")

    asserts.equals(env, ["export.json", "export.pt2"], basenames(target[DefaultInfo].files))
    asserts.equals(env, ["export.json", "export.pt2", "export.timings.json"], basenames(action.outputs))

    # Neither weights nor anything else that differs between two fine-tunes.
    asserts.equals(env, ["config.json", "export.options.json"], basenames(action.inputs))
    asserts.equals(env, exported.model.config.path, argument_after(action, "--config"))
    asserts.equals(env, exported.program.path, argument_after(action, "--out-program"))
    asserts.equals(env, exported.signature.path, argument_after(action, "--out-signature"))
    asserts.equals(env, exported.options.path, argument_after(action, "--options"))
    asserts.equals(env, "//tests/starlark:export", argument_after(action, "--target"))
    asserts.equals(env, 64, exported.max_cache_len)
    asserts.equals(env, "float32", exported.dtype)
    asserts.equals(env, "input_ids", exported.input_form)
    return analysistest.end(env)

_export_test = analysistest.make(_export_test_impl)

def _hermetic_test_impl(ctx):
    env = analysistest.begin(ctx)
    action = action_of(env, "ExecutorchExport")
    for argument in action.argv:
        absolute = argument.startswith("/") and not argument.startswith("//")
        asserts.false(env, absolute, "an absolute path on the command line: " + argument)
    asserts.equals(env, "0", action.env.get("PYTHONHASHSEED"))
    asserts.equals(env, "1", action.env.get("OMP_NUM_THREADS"))
    asserts.false(env, "HOME" in action.env, "the action sees HOME")
    asserts.equals(env, "/usr/bin:/bin", action.env.get("PATH"))
    return analysistest.end(env)

_hermetic_test = analysistest.make(
    _hermetic_test_impl,
    config_settings = {"//command_line_option:action_env": ["PYTHONHASHSEED=random", "HOME=/home/someone", "PATH=/somewhere"]},
)

def _options_test_impl(ctx):
    env = analysistest.begin(ctx)
    written = [
        action
        for action in analysistest.target_actions(env)
        if [file for file in action.outputs.to_list() if file.basename.endswith(".options.json")]
    ]
    asserts.equals(env, 1, len(written))
    asserts.equals(env, json.decode(ctx.attr.options), json.decode(written[0].content))
    return analysistest.end(env)

_options_test = analysistest.make(
    _options_test_impl,
    attrs = {"options": attr.string(mandatory = True)},
)

def export_test_suite(name):
    """Declares the tests of `executorch_export`.

    Args:
        name: name of the test suite.
    """
    executorch_export(
        name = "export",
        max_cache_len = 64,
        model = ":hf_safetensors",
        tags = ["manual"],
    )
    executorch_export(
        name = "export_everything",
        batch_size = 2,
        custom_ops = [
            "custom_kv_cache",
            "custom_sdpa",
        ],
        dtype = "float16",
        dynamic_seq_len = False,
        input_form = "inputs_embeds",
        logits = "all",
        max_cache_len = 128,
        max_seq_len = 8,
        model = ":hf_gguf",
        quantization = "8da4w",
        quantization_allow_skipped = True,
        quantization_embedding = "8w",
        quantization_group_size = 64,
        tags = ["manual"],
    )
    executorch_export(
        name = "export_embedding",
        max_cache_len = 64,
        model = ":hf_safetensors",
        quantization_embedding = "4w",
        tags = ["manual"],
    )
    _options_test(
        name = "export_embedding_options_test",
        size = "small",
        options = json.encode({
            "batch_size": 1,
            "custom_ops": [],
            "dtype": "float32",
            "dynamic_seq_len": True,
            "input_form": "input_ids",
            "logits": "last",
            "max_cache_len": 64,
            "max_seq_len": 0,
            "quantization": {
                "allow_skipped": False,
                "embedding": "4w",
                "group_size": 32,
                "scheme": None,
            },
            "task": "text-generation",
        }),
        target_under_test = ":export_embedding.shared",
    )
    _export_test(
        name = "export_test",
        size = "small",
        target_under_test = ":export.shared",
    )
    _hermetic_test(
        name = "export_hermetic_test",
        size = "small",
        target_under_test = ":export.shared",
    )
    _options_test(
        name = "export_default_options_test",
        size = "small",
        options = json.encode({
            "batch_size": 1,
            "custom_ops": [],
            "dtype": "float32",
            "dynamic_seq_len": True,
            "input_form": "input_ids",
            "logits": "last",
            "max_cache_len": 64,
            "max_seq_len": 0,
            "task": "text-generation",
        }),
        target_under_test = ":export.shared",
    )
    _options_test(
        name = "export_all_options_test",
        size = "small",
        options = json.encode({
            "batch_size": 2,
            "custom_ops": ["custom_kv_cache", "custom_sdpa"],
            "dtype": "float16",
            "dynamic_seq_len": False,
            "input_form": "inputs_embeds",
            "logits": "all",
            "max_cache_len": 128,
            "max_seq_len": 8,
            "quantization": {
                "allow_skipped": True,
                "embedding": "8w",
                "group_size": 64,
                "scheme": "8da4w",
            },
            "task": "text-generation",
        }),
        target_under_test = ":export_everything.shared",
    )
    executorch_export(
        name = "export_of_unknown_task",
        model = ":hf_half_sized",
        tags = ["manual"],
    )

    # What is not known when targets are analysed is left to the export, with all that it may need.
    _options_test(
        name = "export_of_unknown_task_options_test",
        options = json.encode({
            "batch_size": 1,
            "custom_ops": [],
            "dtype": "float32",
            "dynamic_seq_len": True,
            "image_size": 0,
            "input_form": "input_ids",
            "logits": "last",
            "max_seq_len": 0,
        }),
        target_under_test = ":export_of_unknown_task.shared",
    )

    refused = {
        "export_no_cache_test": struct(
            attributes = {"max_cache_len": 0},
            words = ["max_cache_len is missing", "prompt and answer together"],
        ),
        "export_negative_cache_test": struct(
            attributes = {"max_cache_len": -5},
            words = ["max_cache_len = -5 is too small."],
        ),
        "export_batch_size_test": struct(
            attributes = {"batch_size": 0},
            words = ["batch_size = 0 is too small.", "Write batch_size = 1 or more."],
        ),
        "export_max_seq_len_test": struct(
            attributes = {"max_seq_len": -1},
            words = ["max_seq_len = -1 is too small."],
        ),
        "export_sequence_beyond_cache_test": struct(
            attributes = {"max_seq_len": 65},
            words = ["max_seq_len = 65 is more than the cache holds (max_cache_len = 64).", "at most 64"],
        ),
        "export_dtype_test": struct(
            attributes = {"dtype": "fp32"},
            words = ["dtype = \"fp32\" is not known.", "\"auto\", \"float32\", \"float16\" or \"bfloat16\""],
        ),
        "export_input_form_test": struct(
            attributes = {"input_form": "tokens"},
            words = ["input_form = \"tokens\" is not known.", "\"input_ids\" or \"inputs_embeds\""],
        ),
        "export_logits_test": struct(
            attributes = {"logits": "none"},
            words = ["logits = \"none\" is not known.", "\"last\" or \"all\""],
        ),
        "export_group_size_test": struct(
            attributes = {"quantization": "8da4w", "quantization_group_size": 0},
            words = ["quantization_group_size = 0 is too small."],
        ),
        "export_metal_scheme_test": struct(
            attributes = {"quantization": "fpa4w"},
            words = ["quantization = \"fpa4w\" is for ExecuTorch's Metal backend alone", "\"4w\" with a device of the backend mlx"],
        ),
        "export_skipped_without_scheme_test": struct(
            attributes = {"quantization_allow_skipped": True},
            words = ["quantization_allow_skipped is set, but quantization is not."],
        ),
        "export_custom_op_test": struct(
            attributes = {"custom_ops": ["custom_sdpa", "custom_rope"]},
            words = ["custom_ops = \"custom_rope\" is not known.", "\"custom_kv_cache\" or \"custom_sdpa\""],
        ),
        "export_scheme_test": struct(
            attributes = {"quantization": "3w"},
            words = ["quantization = \"3w\" is not known.", "\"8da4w\", \"8da8w\", \"4w\" or \"8w\""],
        ),
        "export_embedding_scheme_test": struct(
            attributes = {"quantization": "8da4w", "quantization_embedding": "8da4w"},
            words = ["quantization_embedding = \"8da4w\" is not known.", "\"4w\" or \"8w\""],
        ),
        "export_memory_test": struct(
            attributes = {"memory": "3g"},
            words = ["memory = \"3g\" is not a size", "1g, 2g, 4g, 8g, 16g, 32g, 64g, 128g, 256g"],
        ),
    }
    for test_name, case in refused.items():
        refusal_test(
            name = test_name,
            rule = executorch_export,
            words = case.words,
            **({"max_cache_len": 64, "model": ":hf_safetensors"} | case.attributes)
        )

    native.test_suite(
        name = name,
        tests = [
            "export_all_options_test",
            "export_default_options_test",
            "export_embedding_options_test",
            "export_of_unknown_task_options_test",
            "export_hermetic_test",
            "export_test",
        ] + refused.keys(),
    )
