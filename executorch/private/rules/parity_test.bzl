"""The rule `executorch_parity_test`; documented in //executorch:parity_test.bzl."""

load("//executorch/private/actions:command.bzl", "COMMAND_ATTRS", "TOOLCHAIN_TYPE")
load("//executorch/private/actions:launch.bzl", "command_executable")
load("//executorch/private/checks:messages.bzl", "display_label", "refuse")
load("//executorch/private/providers:executorch_program_info.bzl", "ExecutorchProgramInfo")
load("//executorch/private/providers:hf_model_info.bzl", "HfModelInfo")

visibility("//executorch")

def _is_number(text):
    """Whether `text` is a decimal number, with or without an exponent, not negative."""
    digits, e, exponent = text.lower().partition("e")
    if e and not exponent.lstrip("+-").isdigit():
        return False
    whole, _, fraction = digits.partition(".")
    return (whole + fraction).isdigit()

def parity_arguments(files, exported, tolerance):
    """Arguments of the command that compares a program with the eager model.

    Args:
        files: something with the Files `program` and `data`, which may be None.
        exported: `ExportedProgramInfo` of the program.
        tolerance: a number in a string, or empty.

    Returns:
        A list of strings and Files.
    """
    model = exported.model
    arguments = [
        "--program",
        files.program,
        "--model-description",
        model.description,
        "--config",
        model.config,
        "--signature",
        exported.signature,
        "--weights",
    ] + model.weights
    if files.data:
        arguments += ["--data", files.data]
    if tolerance:
        arguments += ["--tolerance", tolerance]
    return arguments

def _executorch_parity_test_impl(ctx):
    program = ctx.attr.program[ExecutorchProgramInfo]
    model = program.model
    if ctx.attr.model and ctx.attr.model[HfModelInfo].label != model.label:
        refuse(
            ctx,
            "model = {} is not what {} was made from, which is {}.".format(
                display_label(ctx.attr.model.label),
                display_label(program.label),
                display_label(model.label),
            ),
            "Remove model, or name the same one.",
        )
    if ctx.attr.tolerance and not _is_number(ctx.attr.tolerance):
        refuse(
            ctx,
            "tolerance = \"{}\" is not a number.".format(ctx.attr.tolerance),
            "Write the share of the largest logit that a logit may be off, for example tolerance = \"0.001\".",
        )

    arguments = parity_arguments(program, program.exported, ctx.attr.tolerance)
    return [
        command_executable(ctx, "parity", arguments, program.device.packages),
        testing.ExecutionInfo({"block-network": "1"}),
    ]

executorch_parity_test = rule(
    implementation = _executorch_parity_test_impl,
    attrs = COMMAND_ATTRS | {
        "model": attr.label(
            providers = [HfModelInfo],
            doc = "The `hf_model` to compare with: the one the program was made from, which is the default.",
        ),
        "program": attr.label(
            mandatory = True,
            providers = [ExecutorchProgramInfo],
            doc = "The `executorch_lower` to test. Its backend has to run on the machine of the test.",
        ),
        "tolerance": attr.string(
            doc = "The largest difference of a logit that is accepted, as a share of the largest logit: " +
                  "a number in a string. By default what arithmetic in another order explains, for " +
                  "float32 \"1e-4\".",
        ),
    },
    doc = "Compares a program with the eager model, position by position.",
    test = True,
    toolchains = [TOOLCHAIN_TYPE],
)
