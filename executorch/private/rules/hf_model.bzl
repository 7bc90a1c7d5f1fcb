"""The rules behind the macro `hf_model`; documented in //executorch:hf_model.bzl."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("//executorch/private/actions:command.bzl", "COMMAND_ATTRS", "TOOLCHAIN_TYPE", "command_args", "run_command")
load("//executorch/private/actions:shared.bzl", "linked_providers", "public_groups")
load("//executorch/private/actions:transitions.bzl", "TRANSITION_ATTRS", "normalize")
load("//executorch/private/checks:checkpoint_files.bzl", "classify")
load("//executorch/private/checks:labels.bzl", "public_label", "public_name")
load("//executorch/private/checks:messages.bzl", "check_one_of")
load("//executorch/private/providers:file_sizes_info.bzl", "FileSizesInfo")
load("//executorch/private/providers:hf_model_info.bzl", "HfModelInfo")
load("//executorch/private/tables:options.bzl", "TASKS")

visibility("//executorch")

# A GGUF file has these in its header; safetensors come with a file for each.
_FROM_GGUF = ["tokenizer", "tokenizer_config", "generation_config"]

def _weight_bytes(ctx, weights):
    """Size of the weights, or 0 where that of a file is not known."""
    known = {}
    for target in ctx.attr.srcs:
        if FileSizesInfo in target:
            known |= target[FileSizesInfo].bytes
    sizes = [known.get(file.basename, -1) for file in weights if not file.basename.endswith(".json")]
    total = 0
    for size in sizes:
        if size < 0:
            return 0
        total += size
    return total

def _hf_model_impl(ctx):
    if ctx.attr.task:
        check_one_of(ctx, "task", ctx.attr.task, TASKS)
    checkpoint = classify(ctx, ctx.files.srcs)

    def declare(name):
        return ctx.actions.declare_file("{}.model/{}.json".format(public_name(ctx.label), name))

    config = declare("config")
    description = declare("model")
    outputs = [config, description]

    args = command_args(ctx, "describe")
    if ctx.attr.task:
        args.add("--task", ctx.attr.task)
    args.add_all("--files", checkpoint.relevant.values())
    args.add_all("--names", checkpoint.relevant.keys())
    args.add_all("--passed-over", checkpoint.passed_over)
    if ctx.attr.license:
        args.add("--license", ctx.attr.license)
    args.add_all("--denied-licenses", ctx.attr._denied_licenses[BuildSettingInfo].value)
    args.add("--out-config", config)
    args.add("--out-model", description)

    files = {key: getattr(checkpoint, key) for key in _FROM_GGUF}
    if checkpoint.format == "gguf":
        for key in _FROM_GGUF:
            if not files[key]:
                files[key] = declare(key)
                args.add("--out-" + key.replace("_", "-"), files[key])
                outputs.append(files[key])

    run_command(
        ctx,
        args,
        mnemonic = "HfModelDescribe",
        progress_message = "Checking the checkpoint %{label}",
        inputs = checkpoint.relevant.values(),
        outputs = outputs,
        memory = "1g",
    )

    srcs = depset(ctx.files.srcs)
    return [
        DefaultInfo(files = srcs, runfiles = ctx.runfiles(transitive_files = srcs)),
        OutputGroupInfo(description = depset(outputs)),
        HfModelInfo(
            label = public_label(ctx.label),
            task = ctx.attr.task,
            format = checkpoint.format,
            files = srcs,
            weights = checkpoint.weights,
            weight_bytes = _weight_bytes(ctx, checkpoint.weights),
            config = config,
            description = description,
            license = ctx.attr.license,
            license_files = checkpoint.license_files,
            package_url = ctx.attr.package_url,
            readme = checkpoint.readme,
            source = checkpoint.source,
            modules = checkpoint.modules,
            chat_template = checkpoint.chat_template,
            **files
        ),
    ]

executorch_hf_model_shared = rule(
    implementation = _hf_model_impl,
    attrs = COMMAND_ATTRS | TRANSITION_ATTRS | {
        "license": attr.string(),
        "package_url": attr.string(),
        "srcs": attr.label_list(allow_files = True, mandatory = True),
        "task": attr.string(mandatory = True),
        "_denied_licenses": attr.label(default = "//executorch/settings:denied_licenses"),
    },
    cfg = normalize,
    doc = "A checkpoint of the Hugging Face hub, checked and described.",
    provides = [HfModelInfo],
    toolchains = [TOOLCHAIN_TYPE],
)

def _executorch_hf_model_impl(ctx):
    shared = ctx.attr.shared
    srcs = depset(ctx.files.srcs)
    _, groups = linked_providers(ctx, depset(), public_groups(shared))
    return [
        DefaultInfo(files = srcs, runfiles = ctx.runfiles(transitive_files = srcs)),
        groups,
        shared[HfModelInfo],
    ]

executorch_hf_model = rule(
    implementation = _executorch_hf_model_impl,
    attrs = {
        "shared": attr.label(mandatory = True, providers = [HfModelInfo]),
        "srcs": attr.label_list(allow_files = True, mandatory = True),
    },
    doc = "A checkpoint of the Hugging Face hub, checked and described.",
    provides = [HfModelInfo],
)
