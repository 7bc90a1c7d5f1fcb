"""The rules behind the macro `executorch_export`; documented in //executorch:export.bzl."""

load("//executorch/private/actions:command.bzl", "COMMAND_ATTRS", "TOOLCHAIN_TYPE", "command_args", "run_command")
load("//executorch/private/actions:shared.bzl", "public_rule")
load("//executorch/private/actions:transitions.bzl", "TRANSITION_ATTRS", "normalize")
load("//executorch/private/checks:labels.bzl", "public_label", "public_name")
load("//executorch/private/checks:messages.bzl", "check_at_least", "check_one_of", "display_label", "refuse")
load("//executorch/private/providers:exported_program_info.bzl", "ExportedProgramInfo")
load("//executorch/private/providers:hf_model_info.bzl", "HfModelInfo")
load("//executorch/private/tables:options.bzl", "CUSTOM_OPS", "DTYPES", "EMBEDDING_QUANTIZATIONS", "GENERATION", "INPUT_FORMS", "LOGITS", "OTHER_QUANTIZATIONS", "QUANTIZATIONS")

visibility("//executorch")

def _check_task(ctx, task):
    """Refuses what only models that generate text have, and images of others.

    A task that is not written is known with the checkpoint, and the export checks the same then.
    """
    attr = ctx.attr
    if not task:
        return
    if task == GENERATION:
        if not attr.max_cache_len:
            refuse(
                ctx,
                "max_cache_len is missing: how many tokens of prompt and answer together the program has room for.",
                "Write it, for example max_cache_len = 2048; building the model's model.json shows the limit, max_position_embeddings.",
            )
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
    }
    if task:
        options["task"] = task
    if task != GENERATION:
        options["image_size"] = attr.image_size
    if task and task != GENERATION:
        return options
    options |= {
        "custom_ops": sorted(attr.custom_ops),
        "input_form": attr.input_form,
        "logits": attr.logits,
    }
    if attr.max_cache_len:
        options["max_cache_len"] = attr.max_cache_len
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
    name = public_name(ctx.label)
    model = ctx.attr.model[HfModelInfo]
    _check_task(ctx, model.task)

    options = ctx.actions.declare_file(name + ".options.json")
    ctx.actions.write(options, json.encode_indent(_options(ctx.attr, model.task), indent = "  ") + "\n")
    program = ctx.actions.declare_file(name + ".pt2")
    signature = ctx.actions.declare_file(name + ".json")
    timings = ctx.actions.declare_file(name + ".timings.json")

    # Neither weights nor anything else in which two fine-tunes of one architecture differ.
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
            label = public_label(ctx.label),
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

executorch_export_shared = rule(
    implementation = _executorch_export_impl,
    attrs = COMMAND_ATTRS | TRANSITION_ATTRS | {
        "batch_size": attr.int(mandatory = True),
        "custom_ops": attr.string_list(mandatory = True),
        "dtype": attr.string(mandatory = True),
        "dynamic_seq_len": attr.bool(mandatory = True),
        "image_size": attr.int(mandatory = True),
        "input_form": attr.string(mandatory = True),
        "logits": attr.string(mandatory = True),
        "max_cache_len": attr.int(mandatory = True),
        "max_seq_len": attr.int(mandatory = True),
        "memory": attr.string(mandatory = True),
        "model": attr.label(mandatory = True, providers = [HfModelInfo]),
        "quantization": attr.string(mandatory = True),
        "quantization_allow_skipped": attr.bool(mandatory = True),
        "quantization_embedding": attr.string(mandatory = True),
        "quantization_group_size": attr.int(mandatory = True),
        "remote": attr.string(mandatory = True),
    },
    cfg = normalize,
    doc = "Exports a model with `torch.export`.",
    provides = [ExportedProgramInfo],
    toolchains = [TOOLCHAIN_TYPE],
)

executorch_export = public_rule(
    doc = "A model, exported with `torch.export`.",
    providers = [ExportedProgramInfo],
)
