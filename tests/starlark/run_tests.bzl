"""Analysis tests of `executorch_parity_test`, `executorch_generate` and `tiny_checkpoint`."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("//executorch:defs.bzl", "executorch_export", "executorch_generate", "executorch_lower", "executorch_parity_test", "tiny_checkpoint")
load(":helpers.bzl", "action_of", "argument_after", "basenames", "refusal_test")

def _written(env, extension):
    """Content of the file with an extension that the target under test writes."""
    found = [
        action.content
        for action in analysistest.target_actions(env)
        if action.mnemonic == "FileWrite" and
           [file for file in action.outputs.to_list() if file.extension == extension]
    ]
    asserts.equals(env, 1, len(found), "files with the extension " + extension)
    return found[0]

def _params_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    runfiles = [file.short_path for file in target[DefaultInfo].default_runfiles.files.to_list()]
    lines = _written(env, "params").splitlines()

    expected = ctx.attr.params
    asserts.equals(env, expected, lines)
    workspace = ctx.workspace_name + "/"
    for line in lines:
        if line.startswith(workspace):
            asserts.true(env, line.removeprefix(workspace) in runfiles, line + " is not among the runfiles")
    asserts.true(env, "python/main.py" in runfiles, "main.py is not among the runfiles")
    return analysistest.end(env)

_params_test = analysistest.make(
    _params_test_impl,
    attrs = {"params": attr.string_list(mandatory = True)},
)

def _tiny_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    action = action_of(env, "HfModelTiny")
    asserts.equals(env, ctx.attr.files, basenames(target[DefaultInfo].files))
    asserts.equals(env, ctx.attr.seed, argument_after(action, "--seed"))
    return analysistest.end(env)

_tiny_test = analysistest.make(
    _tiny_test_impl,
    attrs = {
        "files": attr.string_list(mandatory = True),
        "seed": attr.string(mandatory = True),
    },
)

def run_test_suite(name):
    """Declares the tests of what runs programs and of `tiny_checkpoint`.

    Args:
        name: name of the test suite.
    """
    executorch_lower(
        name = "lower_full",
        device = "//executorch/devices:portable",
        exported = ":export",
        tags = ["manual"],
    )
    executorch_parity_test(
        name = "parity",
        model = ":hf_sharded",
        program = ":lower",
        tags = ["manual"],
        tolerance = "1e-3",
    )
    executorch_generate(
        name = "generate",
        program = ":lower_full",
        tags = ["manual"],
    )
    here = "_main/tests/starlark/"
    _params_test(
        name = "parity_params_test",
        size = "small",
        params = [
            "parity",
            "--target",
            "//tests/starlark:parity",
            "--program",
            here + "lower.pte",
            "--model-description",
            here + "hf_sharded.model/model.json",
            "--config",
            here + "hf_sharded.model/config.json",
            "--signature",
            here + "export_sharded.json",
            "--weights",
            here + "sharded/model-00001-of-00002.safetensors",
            here + "sharded/model-00002-of-00002.safetensors",
            here + "sharded/model.safetensors.index.json",
            "--tolerance",
            "1e-3",
        ],
        target_under_test = ":parity",
    )
    _params_test(
        name = "generate_params_test",
        size = "small",
        params = [
            "generate",
            "--target",
            "//tests/starlark:generate",
            "--program",
            here + "lower_full.pte",
            "--model-description",
            here + "hf_safetensors.model/model.json",
            "--tokenizer",
            here + "checkpoint/tokenizer.json",
            "--tokenizer-config",
            here + "checkpoint/tokenizer_config.json",
            "--chat-template",
            here + "checkpoint/chat_template.jinja",
        ],
        target_under_test = ":generate",
    )

    tiny_checkpoint(
        name = "tiny",
        config = "//models:tiny/llama/config.json",
        seed = 7,
        tags = ["manual"],
    )
    tiny_checkpoint(
        name = "tiny_sharded",
        config = "//models:tiny/llama/config.json",
        generation_config = "//models:tiny/llama/generation_config.json",
        shards = 2,
        tags = ["manual"],
    )
    _tiny_test(
        name = "tiny_test",
        size = "small",
        files = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"],
        seed = "7",
        target_under_test = ":tiny.shared",
    )
    _tiny_test(
        name = "tiny_sharded_test",
        size = "small",
        files = [
            "config.json",
            "generation_config.json",
            "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors",
            "model.safetensors.index.json",
            "tokenizer.json",
            "tokenizer_config.json",
        ],
        seed = "0",
        target_under_test = ":tiny_sharded.shared",
    )

    executorch_export(
        name = "export_embeddings",
        input_form = "inputs_embeds",
        max_cache_len = 64,
        model = ":hf_safetensors",
        tags = ["manual"],
    )
    executorch_lower(
        name = "lower_embeddings",
        device = "//executorch/devices:portable",
        exported = ":export_embeddings",
        tags = ["manual"],
    )
    refusal_test(
        name = "parity_other_model_test",
        rule = executorch_parity_test,
        model = ":hf_gguf",
        program = ":lower",
        words = [
            "model = //tests/starlark:hf_gguf is not what //tests/starlark:lower was made from, which is //tests/starlark:hf_sharded.",
        ],
    )
    for number, tolerance in enumerate(["small", "-1", "1e", ".", "1.5.2"]):
        refusal_test(
            name = "parity_tolerance_{}_test".format(number),
            rule = executorch_parity_test,
            program = ":lower",
            tolerance = tolerance,
            words = ["tolerance = \"{}\" is not a number.".format(tolerance)],
        )
    refusal_test(
        name = "generate_no_tokenizer_test",
        rule = executorch_generate,
        program = ":lower",
        words = ["//tests/starlark:hf_sharded has no tokenizer", "Add the checkpoint's tokenizer.json to its srcs."],
    )
    refusal_test(
        name = "generate_embeddings_test",
        rule = executorch_generate,
        program = ":lower_embeddings",
        words = ["//tests/starlark:lower_embeddings takes inputs_embeds", "input_form = \"input_ids\""],
    )
    refusal_test(
        name = "tiny_no_shards_test",
        rule = tiny_checkpoint,
        config = "//models:tiny/llama/config.json",
        shards = 0,
        words = ["shards = 0 is too small."],
    )

    native.test_suite(
        name = name,
        tests = [
            "generate_embeddings_test",
            "generate_no_tokenizer_test",
            "generate_params_test",
            "parity_other_model_test",
            "parity_params_test",
            "tiny_no_shards_test",
            "tiny_sharded_test",
            "tiny_test",
        ] + ["parity_tolerance_{}_test".format(number) for number in range(5)],
    )
