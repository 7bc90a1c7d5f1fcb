"""The rules behind the macro `tiny_checkpoint`; documented in //executorch:tiny_checkpoint.bzl."""

load("//executorch/private/actions:command.bzl", "COMMAND_ATTRS", "TOOLCHAIN_TYPE", "command_args", "run_command")
load("//executorch/private/actions:shared.bzl", "public_rule")
load("//executorch/private/actions:transitions.bzl", "TRANSITION_ATTRS", "normalize")
load("//executorch/private/checks:labels.bzl", "public_name")
load("//executorch/private/checks:messages.bzl", "check_at_least", "check_one_of")
load("//executorch/private/tables:options.bzl", "DTYPES", "GENERATION", "TASKS")

visibility("//executorch")

# Models of the other tasks may not read text.
_WITH_TOKENIZER = [GENERATION, "text-classification"]

def _five_digits(number):
    text = str(number)
    return "0" * (5 - len(text)) + text

def _weights_names(shards):
    """Names as `save_pretrained` of transformers gives them."""
    if shards == 1:
        return ["model.safetensors"]
    return [
        "model-{}-of-{}.safetensors".format(_five_digits(shard + 1), _five_digits(shards))
        for shard in range(shards)
    ]

def _tiny_checkpoint_impl(ctx):
    check_at_least(ctx, "shards", ctx.attr.shards, 1)
    check_one_of(ctx, "dtype", ctx.attr.dtype, DTYPES)
    check_one_of(ctx, "task", ctx.attr.task, TASKS)

    def declare(name):
        return ctx.actions.declare_file("{}/{}".format(public_name(ctx.label), name))

    # The config unchanged, under the name that it has in a checkpoint.
    passed_on = {"config.json": ctx.file.config}
    args = command_args(ctx, "tiny")
    args.add("--config", ctx.file.config)
    if ctx.file.generation_config:
        passed_on["generation_config.json"] = ctx.file.generation_config
        args.add("--generation-config", ctx.file.generation_config)
    args.add("--seed", ctx.attr.seed)
    args.add("--task", ctx.attr.task)
    if ctx.attr.dtype != "auto":
        args.add("--dtype", ctx.attr.dtype)

    outputs = [declare(name) for name in _weights_names(ctx.attr.shards)]
    args.add_all(outputs, before_each = "--out-weights")
    others = {}
    if ctx.attr.task in _WITH_TOKENIZER:
        others["--out-tokenizer"] = declare("tokenizer.json")
        others["--out-tokenizer-config"] = declare("tokenizer_config.json")
    if ctx.attr.shards > 1:
        others["--out-index"] = declare("model.safetensors.index.json")
    for option, file in others.items():
        args.add(option, file)
        outputs.append(file)

    run_command(
        ctx,
        args,
        mnemonic = "HfModelTiny",
        progress_message = "Making the random checkpoint %{label}",
        inputs = passed_on.values(),
        outputs = outputs,
        memory = "1g",
    )
    links = []
    for name, file in passed_on.items():
        link = declare(name)
        ctx.actions.symlink(output = link, target_file = file)
        links.append(link)
    return [DefaultInfo(files = depset(outputs + links))]

executorch_tiny_checkpoint_shared = rule(
    implementation = _tiny_checkpoint_impl,
    attrs = COMMAND_ATTRS | TRANSITION_ATTRS | {
        "config": attr.label(allow_single_file = [".json"], mandatory = True),
        "dtype": attr.string(mandatory = True),
        "generation_config": attr.label(allow_single_file = [".json"]),
        "seed": attr.int(mandatory = True),
        "shards": attr.int(mandatory = True),
        "task": attr.string(mandatory = True),
    },
    cfg = normalize,
    doc = "A checkpoint of random weights, for tests.",
    toolchains = [TOOLCHAIN_TYPE],
)

executorch_tiny_checkpoint = public_rule(
    doc = "A checkpoint of random weights, for tests.",
    providers = [],
)
