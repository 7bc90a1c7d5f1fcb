"""Analysis tests of `hf_model`."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("//executorch:defs.bzl", "hf_model")
load("//executorch:providers.bzl", "HfModelInfo")
load("//executorch/private/rules:sized_files.bzl", "executorch_sized_files")
load(":helpers.bzl", "action_of", "argument_after", "basenames", "empty_files", "folder", "refusal_test")

_SAFETENSORS = [
    "checkpoint/LICENSE",
    "checkpoint/README.md",
    "checkpoint/chat_template.jinja",
    "checkpoint/config.json",
    "checkpoint/generation_config.json",
    "checkpoint/model.safetensors",
    "checkpoint/onnx.data",
    "checkpoint/special_tokens_map.json",
    "checkpoint/tokenizer.json",
    "checkpoint/tokenizer_config.json",
]

def _safetensors_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    model = target[HfModelInfo]
    action = action_of(env, "HfModelDescribe")

    asserts.equals(env, [name.rpartition("/")[2] for name in _SAFETENSORS], basenames(target[DefaultInfo].files))
    asserts.equals(
        env,
        [name.rpartition("/")[2] for name in _SAFETENSORS if name != "checkpoint/onnx.data"],
        basenames(action.inputs),
        "a file that says nothing about the model is no input",
    )
    asserts.equals(env, ["config.json", "model.json"], basenames(action.outputs))
    asserts.equals(env, "safetensors", model.format)
    asserts.equals(env, "text-generation", model.task)
    asserts.equals(env, ["model.safetensors"], basenames(model.weights))
    asserts.equals(env, "tests/starlark/checkpoint/tokenizer.json", model.tokenizer.short_path)
    asserts.equals(env, "tests/starlark/checkpoint/tokenizer_config.json", model.tokenizer_config.short_path)
    asserts.equals(env, "tests/starlark/checkpoint/generation_config.json", model.generation_config.short_path)
    asserts.equals(env, "tests/starlark/checkpoint/chat_template.jinja", model.chat_template.short_path)
    asserts.equals(env, "tests/starlark/hf_safetensors.model/config.json", model.config.short_path)
    asserts.equals(env, "tests/starlark/hf_safetensors.model/model.json", model.description.short_path)
    asserts.equals(env, model.config.path, argument_after(action, "--out-config"))
    asserts.equals(env, model.description.path, argument_after(action, "--out-model"))
    asserts.equals(env, "//tests/starlark:hf_safetensors", argument_after(action, "--target"))
    asserts.equals(env, None, argument_after(action, "--out-tokenizer"))
    return analysistest.end(env)

_safetensors_test = analysistest.make(_safetensors_test_impl)

def _gguf_test_impl(ctx):
    env = analysistest.begin(ctx)
    model = analysistest.target_under_test(env)[HfModelInfo]
    action = action_of(env, "HfModelDescribe")

    asserts.equals(env, "gguf", model.format)
    asserts.equals(env, ["LICENSE", "model.Q4_1.gguf"], basenames(action.inputs))
    asserts.equals(
        env,
        ["config.json", "generation_config.json", "model.json", "tokenizer.json", "tokenizer_config.json"],
        basenames(action.outputs),
    )
    for option, file in {
        "--out-generation-config": model.generation_config,
        "--out-tokenizer": model.tokenizer,
        "--out-tokenizer-config": model.tokenizer_config,
    }.items():
        asserts.equals(env, file.path, argument_after(action, option))
    return analysistest.end(env)

_gguf_test = analysistest.make(_gguf_test_impl)

def _gguf_with_tokenizer_test_impl(ctx):
    env = analysistest.begin(ctx)
    model = analysistest.target_under_test(env)[HfModelInfo]
    action = action_of(env, "HfModelDescribe")
    asserts.equals(env, "tests/starlark/gguf_tokenizer/tokenizer.json", model.tokenizer.short_path)
    asserts.equals(env, None, argument_after(action, "--out-tokenizer"))
    asserts.equals(env, model.tokenizer_config.path, argument_after(action, "--out-tokenizer-config"))
    return analysistest.end(env)

_gguf_with_tokenizer_test = analysistest.make(_gguf_with_tokenizer_test_impl)

def _sharded_test_impl(ctx):
    env = analysistest.begin(ctx)
    model = analysistest.target_under_test(env)[HfModelInfo]
    names = [
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
    ]
    asserts.equals(env, names, basenames(model.weights))
    asserts.equals(env, sorted(names + ["config.json"]), basenames(action_of(env, "HfModelDescribe").inputs))
    return analysistest.end(env)

_sharded_test = analysistest.make(_sharded_test_impl)

_HUB = [
    "hub/.gitattributes",
    "hub/1_Pooling/config.json",
    "hub/2_Dense/config.json",
    "hub/2_Dense/model.safetensors",
    "hub/2_Dense/pytorch_model.bin",
    "hub/README.md",
    "hub/config.json",
    "hub/consolidated.safetensors",
    "hub/model.safetensors",
    "hub/modules.json",
    "hub/onnx/config.json",
    "hub/onnx/model.onnx",
    "hub/original/consolidated.00.pth",
    "hub/pytorch_model.bin",
    "hub/tf_model.h5",
    "hub/tokenizer.json",
]

def _hub_test_impl(ctx):
    env = analysistest.begin(ctx)
    model = analysistest.target_under_test(env)[HfModelInfo]
    action = action_of(env, "HfModelDescribe")
    asserts.equals(env, ["model.safetensors"], basenames(model.weights))
    asserts.equals(env, "tests/starlark/hub/tokenizer.json", model.tokenizer.short_path)
    asserts.equals(
        env,
        ["1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors"],
        model.modules.keys(),
    )
    kept = [
        "1_Pooling/config.json",
        "2_Dense/config.json",
        "2_Dense/model.safetensors",
        "README.md",
        "config.json",
        "model.safetensors",
        "modules.json",
        "tokenizer.json",
    ]
    asserts.equals(
        env,
        sorted(["tests/starlark/hub/" + name for name in kept]),
        sorted([file.short_path for file in action.inputs.to_list() if file.short_path.startswith("tests/starlark/hub/")]),
        "what is passed over is no input",
    )
    place = action.argv.index("--names")
    asserts.equals(env, kept, action.argv[place + 1:place + 1 + len(kept)])
    for name in ["onnx/config.json", "original/consolidated.00.pth", "2_Dense/pytorch_model.bin", "tf_model.h5"]:
        asserts.true(env, name in action.argv, name + " is listed")
    return analysistest.end(env)

_hub_test = analysistest.make(_hub_test_impl)

def _weight_bytes_test_impl(ctx):
    env = analysistest.begin(ctx)
    model = analysistest.target_under_test(env)[HfModelInfo]
    asserts.equals(env, ctx.attr.weight_bytes, str(model.weight_bytes))
    return analysistest.end(env)

_weight_bytes_test = analysistest.make(
    _weight_bytes_test_impl,
    attrs = {"weight_bytes": attr.string(mandatory = True)},
)

def _odd_names_test_impl(ctx):
    env = analysistest.begin(ctx)
    argv = action_of(env, "HfModelDescribe").argv
    for end in ["/a folder #1/config.json", "/a folder #1/modèle é.safetensors"]:
        found = [argument for argument in argv if argument.endswith(end)]
        asserts.equals(env, 1, len(found), "arguments that end in " + end)
    return analysistest.end(env)

_odd_names_test = analysistest.make(_odd_names_test_impl)

def _model(name, srcs, **attributes):
    empty_files(
        name = name + "_files",
        names = srcs,
        tags = ["manual"],
    )
    hf_model(
        name = name,
        srcs = [":" + name + "_files"],
        tags = ["manual"],
        **({"task": "text-generation"} | attributes)
    )

def _refused(name, srcs, words, **attributes):
    empty_files(
        name = name + "_files",
        names = ["{}/{}".format(name, src) for src in srcs],
        tags = ["manual"],
    )
    refusal_test(
        name = name,
        rule = hf_model,
        srcs = [":" + name + "_files"],
        words = words,
        **attributes
    )

def hf_model_test_suite(name):
    """Declares the tests of `hf_model`.

    Args:
        name: name of the test suite.
    """
    _model("hf_safetensors", _SAFETENSORS)
    _model("hf_gguf", ["gguf/LICENSE", "gguf/model.Q4_1.gguf"])
    _model("hf_gguf_with_tokenizer", ["gguf_tokenizer/model.gguf", "gguf_tokenizer/tokenizer.json"])
    _model("hf_sharded", [
        "sharded/config.json",
        "sharded/model-00001-of-00002.safetensors",
        "sharded/model-00002-of-00002.safetensors",
        "sharded/model.safetensors.index.json",
    ])
    for sized_name, sizes in {
        # More than 32 bits, and an index, which is no weights.
        "hf_sized": {
            "config.json": "700",
            "model-00001-of-00002.safetensors": "5000000000",
            "model-00002-of-00002.safetensors": "3000000001",
        },
        "hf_half_sized": {"model-00001-of-00002.safetensors": "5000000000"},
    }.items():
        executorch_sized_files(
            name = sized_name + "_files",
            srcs = [":hf_sharded_files"],
            bytes = sizes,
            tags = ["manual"],
        )
        hf_model(
            name = sized_name,
            srcs = [":{}_files".format(sized_name)],
            tags = ["manual"],
        )
    _model("hf_hub", _HUB)
    _model("hf_odd_names", ["a folder #1/config.json", "a folder #1/modèle é.safetensors"])

    tests = {
        "hf_safetensors_test": _safetensors_test,
        "hf_gguf_test": _gguf_test,
        "hf_gguf_with_tokenizer_test": _gguf_with_tokenizer_test,
        "hf_sharded_test": _sharded_test,
        "hf_hub_test": _hub_test,
        "hf_odd_names_test": _odd_names_test,
    }
    for test_name, test in tests.items():
        test(
            name = test_name,
            size = "small",
            target_under_test = ":{}.shared".format(test_name.removesuffix("_test")),
        )

    weight_bytes = {"hf_half_sized": 0, "hf_sharded": 0, "hf_sized": 8000000001}
    for model, size in weight_bytes.items():
        _weight_bytes_test(
            name = model + "_weight_bytes_test",
            size = "small",
            target_under_test = ":" + model,
            weight_bytes = str(size),
        )

    refused = {
        "hf_no_weights_test": struct(
            srcs = ["config.json", "tokenizer.json"],
            words = ["srcs has no weights.", "*.safetensors", "*.gguf"],
        ),
        "hf_no_config_test": struct(
            srcs = ["model.safetensors"],
            words = ["srcs has no config.json", "Add the checkpoint's config.json."],
        ),
        "hf_pickle_only_test": struct(
            srcs = ["config.json", "pytorch_model.bin"],
            words = ["pytorch_model.bin is pickled", "runs any code", "save_pretrained"],
        ),
        "hf_pickle_in_a_folder_test": struct(
            srcs = ["config.json", "original/consolidated.00.pth"],
            words = ["original/consolidated.00.pth is pickled", "save_pretrained"],
        ),
        "hf_weights_in_a_folder_test": struct(
            srcs = ["config.json", "fp16/model.safetensors"],
            words = ["only in folders below", "/fp16/model.safetensors", "beside config.json"],
        ),
        "hf_adapter_test": struct(
            srcs = ["adapter_config.json", "adapter_model.safetensors"],
            words = ["an adapter (LoRA)", "merge_and_unload"],
        ),
        "hf_pickles_test": struct(
            srcs = ["config.json", "a.ckpt", "b.PTH", "c.pt", "d.pkl", "e.pickle", "f.joblib"],
            words = ["a.ckpt, b.PTH, c.pt, d.pkl, e.pickle, f.joblib are pickled"],
        ),
        "hf_both_formats_test": struct(
            srcs = ["config.json", "model.safetensors", "model.gguf"],
            words = ["srcs has the weights twice, as model.safetensors and as model.gguf.", "Leave one format out."],
        ),
        "hf_two_ggufs_test": struct(
            srcs = ["model.Q4_0.gguf", "model.Q8_0.gguf"],
            words = ["several GGUF files: model.Q4_0.gguf, model.Q8_0.gguf."],
        ),
        "hf_two_indexes_test": struct(
            srcs = ["config.json", "m.safetensors", "a.safetensors.index.json", "b.safetensors.index.json"],
            words = ["several safetensors indexes: a.safetensors.index.json, b.safetensors.index.json."],
        ),
        "hf_same_name_twice_test": struct(
            srcs = ["model.safetensors", "a/config.json", "b/config.json"],
            words = ["two files named config.json", "a/config.json and tests/starlark/hf_same_name_twice_test/b/config.json"],
        ),
    }
    for test_name, case in refused.items():
        _refused(test_name, case.srcs, case.words)
    _refused(
        "hf_unknown_task_test",
        ["config.json", "model.safetensors"],
        ["task = \"chat\" is not known.", "Write \"text-generation\""],
        task = "chat",
    )

    folder(
        name = "hf_directory",
        tags = ["manual"],
    )
    refusal_test(
        name = "hf_directory_test",
        rule = hf_model,
        srcs = [":hf_directory"],
        words = ["//tests/starlark:hf_directory is a directory", "glob("],
    )

    native.test_suite(
        name = name,
        tests = tests.keys() + refused.keys() + [model + "_weight_bytes_test" for model in weight_bytes] + ["hf_unknown_task_test", "hf_directory_test"],
    )
