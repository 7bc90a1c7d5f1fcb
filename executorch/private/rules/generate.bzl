"""The rule `executorch_generate`; documented in //executorch:generate.bzl."""

load("//executorch/private/actions:command.bzl", "COMMAND_ATTRS", "TOOLCHAIN_TYPE")
load("//executorch/private/actions:launch.bzl", "command_executable")
load("//executorch/private/checks:messages.bzl", "display_label", "refuse")
load("//executorch/private/providers:executorch_program_info.bzl", "ExecutorchProgramInfo")

visibility("//executorch")

def _executorch_generate_impl(ctx):
    program = ctx.attr.program[ExecutorchProgramInfo]
    model = program.model
    if not model.tokenizer:
        refuse(
            ctx,
            "{} has no tokenizer, so no prompt can be read.".format(display_label(model.label)),
            "Add the checkpoint's tokenizer.json to its srcs.",
        )
    if program.exported.input_form != "input_ids":
        refuse(
            ctx,
            "{} takes {}, and a prompt is token ids.".format(display_label(program.label), program.exported.input_form),
            "Export with input_form = \"input_ids\".",
        )
    arguments = [
        "--program",
        program.program,
        "--model-description",
        model.description,
        "--tokenizer",
        model.tokenizer,
    ]
    if program.data:
        arguments += ["--data", program.data]
    if model.tokenizer_config:
        arguments += ["--tokenizer-config", model.tokenizer_config]
    if model.chat_template:
        arguments += ["--chat-template", model.chat_template]
    return [command_executable(ctx, "generate", arguments, program.device.packages)]

executorch_generate = rule(
    implementation = _executorch_generate_impl,
    attrs = COMMAND_ATTRS | {
        "program": attr.label(
            mandatory = True,
            providers = [ExecutorchProgramInfo],
            doc = "The `executorch_lower` to run. Its backend has to run on this machine.",
        ),
    },
    doc = "Answers a prompt with a program, through ExecuTorch's own LLM runner.",
    executable = True,
    toolchains = [TOOLCHAIN_TYPE],
)
