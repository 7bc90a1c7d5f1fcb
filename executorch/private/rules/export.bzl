"""The rule `executorch_export`; documented in //executorch:export.bzl."""

load("//executorch/private/actions:command.bzl", "COMMAND_ATTRS", "TOOLCHAIN_TYPE", "command_args", "run_command")
load("//executorch/private/actions:memory.bzl", "memory_attr")
load("//executorch/private/actions:remote.bzl", "remote_attr")
load("//executorch/private/actions:transitions.bzl", "TRANSITION_ATTRS", "normalize")
load("//executorch/private/checks:messages.bzl", "check_at_least", "check_one_of", "display_label", "refuse")
load("//executorch/private/providers:exported_program_info.bzl", "ExportedProgramInfo")
load("//executorch/private/providers:hf_model_info.bzl", "HfModelInfo")
load("//executorch/private/tables:options.bzl", "CUSTOM_OPS", "DTYPES", "EMBEDDING_QUANTIZATIONS", "GENERATION", "INPUT_FORMS", "LOGITS", "OTHER_QUANTIZATIONS", "QUANTIZATIONS")

visibility("//executorch")

def _check_task(ctx, task):
    """Refuses what only models that generate text have, and images of others."""
    attr = ctx.attr
    if task == GENERATION:
        check_at_least(ctx, "max_cache_len", attr.max_cache_len, 1)
        wrong = {"image_size": attr.image_size != 0}
    else:
        wrong = {
            "custom_ops": attr.custom_ops != [],
            "input_form": attr.input_form != INPUT_FORMS[0],
            "logits": attr.logits != LOGITS[0],
            "max_cache_len": attr.max_cache_len != 0,
            "quantization": attr.quantization != "",
            "quantization_embedding": attr.quantization_embedding != "",
        }
    for name, is_set in wrong.items():
        if is_set:
            refuse(
                ctx,
                "{} is set, and the task of {} is {}.".format(
                    name,
                    display_label(attr.model.label),
                    task,
                ),
                "Remove it.",
            )

def _check(ctx):
    attr = ctx.attr
    check_at_least(ctx, "image_size", attr.image_size, 0)
    check_at_least(ctx, "batch_size", attr.batch_size, 1)
    if attr.max_cache_len < 0:
        check_at_least(ctx, "max_cache_len", attr.max_cache_len, 1)
    check_at_least(ctx, "max_seq_len", attr.max_seq_len, 0)
    check_one_of(ctx, "dtype", attr.dtype, DTYPES)
    check_one_of(ctx, "input_form", attr.input_form, INPUT_FORMS)
    check_one_of(ctx, "logits", attr.logits, LOGITS)
    if attr.max_cache_len and attr.max_seq_len > attr.max_cache_len:
        refuse(
            ctx,
            "max_seq_len = {} is more than the cache holds (max_cache_len = {}).".format(
                attr.max_seq_len,
                attr.max_cache_len,
            ),
            "Write a max_seq_len of at most {}, or a longer cache.".format(attr.max_cache_len),
        )
    for name in attr.custom_ops:
        check_one_of(ctx, "custom_ops", name, CUSTOM_OPS)
    if attr.quantization in OTHER_QUANTIZATIONS:
        refuse(
            ctx,
            "quantization = \"{}\" {}.".format(attr.quantization, OTHER_QUANTIZATIONS[attr.quantization]),
            "Write quantization = \"4w\" with a device of the backend mlx, or \"8da4w\" with xnnpack.",
        )
    if attr.quantization:
        check_one_of(ctx, "quantization", attr.quantization, QUANTIZATIONS)
    if attr.quantization_embedding:
        check_one_of(ctx, "quantization_embedding", attr.quantization_embedding, EMBEDDING_QUANTIZATIONS)
    if attr.quantization_allow_skipped and not (attr.quantization or attr.quantization_embedding):
        refuse(
            ctx,
            "quantization_allow_skipped is set, but quantization is not.",
            "Write the scheme, for example quantization = \"8da4w\", or remove quantization_allow_skipped.",
        )
    check_at_least(ctx, "quantization_group_size", attr.quantization_group_size, 1)

def _options(attr, task):
    options = {
        "batch_size": attr.batch_size,
        "dtype": attr.dtype,
        "dynamic_seq_len": attr.dynamic_seq_len,
        "max_seq_len": attr.max_seq_len,
        "task": task,
    }
    if task != GENERATION:
        return options | {"image_size": attr.image_size}
    options |= {
        "custom_ops": sorted(attr.custom_ops),
        "input_form": attr.input_form,
        "logits": attr.logits,
        "max_cache_len": attr.max_cache_len,
    }
    if attr.quantization or attr.quantization_embedding:
        options["quantization"] = {
            "allow_skipped": attr.quantization_allow_skipped,
            "embedding": attr.quantization_embedding or None,
            "group_size": attr.quantization_group_size,
            "scheme": attr.quantization or None,
        }
    return options

def _executorch_export_impl(ctx):
    _check(ctx)
    name = ctx.label.name
    model = ctx.attr.model[HfModelInfo]
    _check_task(ctx, model.task)

    options = ctx.actions.declare_file(name + ".options.json")
    ctx.actions.write(options, json.encode_indent(_options(ctx.attr, model.task), indent = "  ") + "\n")
    program = ctx.actions.declare_file(name + ".pt2")
    signature = ctx.actions.declare_file(name + ".json")
    timings = ctx.actions.declare_file(name + ".timings.json")

    # No weights, and nothing else that tells two fine-tunes of one architecture apart.
    args = command_args(ctx, "export")
    args.add("--options", options)
    args.add("--config", model.config)
    args.add("--out-program", program)
    args.add("--out-signature", signature)
    args.add("--out-timings", timings)
    run_command(
        ctx,
        args,
        mnemonic = "ExecutorchExport",
        progress_message = "Exporting %{label}",
        inputs = [options, model.config],
        outputs = [program, signature, timings],
        memory = ctx.attr.memory,
        remote = ctx.attr.remote,
    )

    return [
        DefaultInfo(files = depset([program, signature])),
        OutputGroupInfo(options = depset([options]), timings = depset([timings])),
        ExportedProgramInfo(
            label = ctx.label,
            program = program,
            signature = signature,
            options = options,
            max_cache_len = ctx.attr.max_cache_len,
            # A length of at most 1 cannot vary.
            dynamic_seq_len = ctx.attr.dynamic_seq_len and (ctx.attr.max_seq_len or ctx.attr.max_cache_len) != 1,
            dtype = ctx.attr.dtype,
            input_form = ctx.attr.input_form,
            quantization = ctx.attr.quantization,
            quantization_embedding = ctx.attr.quantization_embedding,
            quantization_group_size = ctx.attr.quantization_group_size,
            model = model,
        ),
    ]

executorch_export = rule(
    implementation = _executorch_export_impl,
    attrs = COMMAND_ATTRS | TRANSITION_ATTRS | {
        "model": attr.label(
            mandatory = True,
            providers = [HfModelInfo],
            doc = "The `hf_model` to export.",
        ),
        "max_cache_len": attr.int(
            doc = "Positions the static cache holds: prompt and answer together. At most the " +
                  "model's own number of positions. A model that generates text has to have it, " +
                  "and no other may.",
        ),
        "image_size": attr.int(
            default = 0,
            doc = "Height and width of the images that a model of images takes. 0 means the size " +
                  "that its configuration names.",
        ),
        "batch_size": attr.int(
            default = 1,
            doc = "Sequences computed at once. ExecuTorch's LLM runner takes 1.",
        ),
        "max_seq_len": attr.int(
            default = 0,
            doc = "The longest piece of input that one call takes, or its fixed length. Runners " +
                  "split a longer prompt. It bounds the memory that the program plans. 0 means " +
                  "`max_cache_len`, or 1 for a fixed length.",
        ),
        "dynamic_seq_len": attr.bool(
            default = True,
            doc = "Whether the input may have any length up to `max_seq_len`, or has just that one.",
        ),
        "dtype": attr.string(
            default = "float32",
            doc = "dtype of parameters, cache and activations: " + ", ".join(DTYPES) +
                  ". `auto` is the checkpoint's.",
        ),
        "input_form": attr.string(
            default = "input_ids",
            doc = "What the program takes: " + " or ".join(INPUT_FORMS) + ".",
        ),
        "logits": attr.string(
            default = "last",
            doc = "`last` gives the logits of the last position, (batch, 1, vocabulary), which is " +
                  "all that generation needs; `all` gives those of every position.",
        ),
        "custom_ops": attr.string_list(
            doc = "ExecuTorch's own operators to use in place of torch's: " + ", ".join(CUSTOM_OPS) +
                  ". For runtimes that have them, as those for CPUs do: apps in C++ link " +
                  "`@rules_executorch//executorch/runtime:llm_custom_ops`.",
        ),
        "quantization": attr.string(
            doc = "How the weights of linear layers are stored: " + ", ".join(QUANTIZATIONS) +
                  " (bits of weights, after `8da` with activations quantized to 8 bits as the " +
                  "program runs). Empty means not quantized.",
        ),
        "quantization_group_size": attr.int(
            default = 32,
            doc = "Weights that share a scale, for grouped schemes. It has to divide the layers' widths.",
        ),
        "quantization_embedding": attr.string(
            doc = "How the embeddings are stored: " + ", ".join(EMBEDDING_QUANTIZATIONS) +
                  ". Empty means not quantized. An output head that shares the embedding's matrix " +
                  "gets one of its own, which `quantization` alone decides about.",
        ),
        "quantization_allow_skipped": attr.bool(
            doc = "Whether layers that the scheme does not fit may stay as they are.",
        ),
        "memory": memory_attr("4g"),
        "remote": remote_attr(),
    },
    cfg = normalize,
    doc = "Exports a model with `torch.export`.",
    provides = [ExportedProgramInfo],
    toolchains = [TOOLCHAIN_TYPE],
)
