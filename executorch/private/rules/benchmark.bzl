"""The rule `executorch_benchmark`; documented in //executorch:benchmark.bzl."""

load("//executorch/private/actions:command.bzl", "COMMAND_ATTRS", "TOOLCHAIN_TYPE")
load("//executorch/private/actions:launch.bzl", "command_executable")
load("//executorch/private/checks:messages.bzl", "display_label", "refuse")
load("//executorch/private/providers:executorch_program_info.bzl", "ExecutorchProgramInfo")

visibility("//executorch")

def _executorch_benchmark_impl(ctx):
    first = ctx.attr.program[ExecutorchProgramInfo]
    model = first.model
    if not model.tokenizer:
        refuse(
            ctx,
            "{} has no tokenizer, so no prompt can be read.".format(display_label(model.label)),
            "Add the checkpoint's tokenizer.json to its srcs.",
        )
    arguments = ["--model-description", model.description, "--tokenizer", model.tokenizer]
    for target in [ctx.attr.program] + ctx.attr.baselines:
        program = target[ExecutorchProgramInfo]
        if program.exported.input_form != "input_ids":
            refuse(
                ctx,
                "{} takes {}, and a prompt is token ids.".format(display_label(program.label), program.exported.input_form),
                "Export with input_form = \"input_ids\".",
            )
        arguments += ["--name", program.label.name, "--program", program.program, "--data", program.data or ""]
    return [command_executable(ctx, "benchmark", arguments, first.device.packages)]

executorch_benchmark = rule(
    implementation = _executorch_benchmark_impl,
    attrs = COMMAND_ATTRS | {
        "program": attr.label(
            mandatory = True,
            providers = [ExecutorchProgramInfo],
            doc = "The `executorch_lower` to measure. Its backend has to run on this machine.",
        ),
        "baselines": attr.label_list(
            providers = [ExecutorchProgramInfo],
            doc = "Programs of the same model to measure beside it, in turns; the table has the ratios.",
        ),
    },
    doc = "Measures how fast a program loads, prefills and decodes.",
    executable = True,
    toolchains = [TOOLCHAIN_TYPE],
)
