"""The rule behind the macro `executorch_cc_embed`; documented in //executorch:cc_embed.bzl."""

load("//executorch/private/actions:command.bzl", "COMMAND_ATTRS", "TOOLCHAIN_TYPE", "command_args", "run_command")
load("//executorch/private/checks:messages.bzl", "display_label", "refuse")
load("//executorch/private/providers:executorch_program_info.bzl", "ExecutorchProgramInfo")

visibility([
    "//executorch",
    "//tests/starlark",
])

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

def _check(ctx):
    program = ctx.attr.program[ExecutorchProgramInfo]
    if program.data:
        refuse(
            ctx,
            "{} keeps its weights outside of the program, and the array would not have them.".format(display_label(program.label)),
            "Lower without external_data = True.",
        )
    symbol = ctx.attr.symbol
    others = [c for c in symbol.elems() if not (c.isdigit() or c == "_" or c in _LETTERS)]
    if not symbol or symbol[0] not in _LETTERS or others:
        refuse(
            ctx,
            "symbol = \"{}\" is not an identifier of C.".format(symbol),
            "Write letters, digits and underscores, for example symbol = \"detector_pte\".",
        )
    alignment = ctx.attr.alignment
    if alignment < 16 or alignment & (alignment - 1):
        refuse(
            ctx,
            "alignment = {} is not a power of two of at least 16, which the runtime wants of a program.".format(alignment),
            "Write alignment = 16, 32 or 64.",
        )

def _executorch_cc_embed_files_impl(ctx):
    _check(ctx)
    program = ctx.attr.program[ExecutorchProgramInfo].program
    header, source = ctx.outputs.header, ctx.outputs.source
    args = command_args(ctx, "embed")
    args.add("--program", program)
    args.add("--symbol", ctx.attr.symbol)
    args.add("--alignment", ctx.attr.alignment)
    if ctx.attr.section:
        args.add("--section", ctx.attr.section)
    args.add("--out-header", header)
    args.add("--out-source", source)
    run_command(
        ctx,
        args,
        mnemonic = "ExecutorchEmbed",
        progress_message = "Writing %{label} as an array",
        inputs = [program],
        outputs = [header, source],
        memory = "1g",
    )
    return [DefaultInfo(files = depset([header, source]))]

# Without the normalizing transition: the C compiler looks for the header where the app is built.
executorch_cc_embed_files = rule(
    implementation = _executorch_cc_embed_files_impl,
    attrs = COMMAND_ATTRS | {
        "alignment": attr.int(doc = "Alignment of the array in bytes."),
        "header": attr.output(mandatory = True),
        "program": attr.label(
            mandatory = True,
            providers = [ExecutorchProgramInfo],
            doc = "The `executorch_lower` to embed.",
        ),
        "section": attr.string(doc = "Section of the object file."),
        "source": attr.output(mandatory = True),
        "symbol": attr.string(mandatory = True, doc = "Name of the array."),
    },
    doc = "A program as a constant array in C.",
    toolchains = [TOOLCHAIN_TYPE],
)
