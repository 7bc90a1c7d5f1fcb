"""The rules behind the macro `executorch_release`; documented in //executorch:release.bzl."""

load("//executorch/private/actions:command.bzl", "COMMAND_ATTRS", "TOOLCHAIN_TYPE", "command_args", "run_command")
load("//executorch/private/actions:shared.bzl", "public_rule")
load("//executorch/private/actions:transitions.bzl", "TRANSITION_ATTRS", "normalize")
load("//executorch/private/checks:labels.bzl", "public_name")
load("//executorch/private/checks:messages.bzl", "display_label", "refuse")
load("//executorch/private/providers:executorch_program_info.bzl", "ExecutorchProgramInfo")

visibility("//executorch")

def _members(program):
    """Names of files in the folder of a program."""
    model = program.model
    members = {
        "manifest.json": program.manifest,
        "model.pte": program.program,
        "model.ptd": program.data,
        "provenance.json": program.provenance,
        "report.md": program.report,
        "sbom.cdx.json": program.sbom,
        "tokenizer_config.json": model.tokenizer_config,
        "chat_template.jinja": model.chat_template,
        "generation_config.json": model.generation_config,
    }
    if model.tokenizer:
        members[model.tokenizer.basename] = model.tokenizer
    for text in model.license_files:
        members["licenses/" + text.basename] = text
    return {name: file for name, file in members.items() if file}

def _executorch_release_impl(ctx):
    if not ctx.attr.programs:
        refuse(ctx, "programs is empty.", "Name the executorch_lower targets to release.")
    folders = {}
    for target in ctx.attr.programs:
        program = target[ExecutorchProgramInfo]
        folder = program.label.name
        if "/" in folder or folder == "SHA256SUMS":
            refuse(ctx, "{} cannot be a folder of the archive.".format(display_label(program.label)), "Rename the target.")
        if folder in folders:
            refuse(
                ctx,
                "{} and {} would be one folder of the archive, {}.".format(
                    display_label(folders[folder].label),
                    display_label(program.label),
                    folder,
                ),
                "Rename one of them.",
            )
        folders[folder] = program

    archive = ctx.actions.declare_file(public_name(ctx.label) + ".tar")
    args = command_args(ctx, "release")
    args.add("--name", public_name(ctx.label).rpartition("/")[2])
    inputs = []
    for folder, program in folders.items():
        for name, file in _members(program).items():
            args.add("--add")
            args.add("{}/{}".format(folder, name))
            args.add(file)
            inputs.append(file)
    args.add("--out", archive)
    run_command(
        ctx,
        args,
        mnemonic = "ExecutorchRelease",
        progress_message = "Packing the release %{label}",
        inputs = inputs,
        outputs = [archive],
        memory = "1g",
        remote = ctx.attr.remote,
    )
    files = depset([archive])
    return [DefaultInfo(files = files, runfiles = ctx.runfiles([archive]))]

executorch_release_shared = rule(
    implementation = _executorch_release_impl,
    attrs = COMMAND_ATTRS | TRANSITION_ATTRS | {
        "programs": attr.label_list(mandatory = True, providers = [ExecutorchProgramInfo]),
        "remote": attr.string(mandatory = True),
    },
    cfg = normalize,
    doc = "Packs programs with what belongs to them into an archive.",
    toolchains = [TOOLCHAIN_TYPE],
)

executorch_release = public_rule(
    doc = "Programs with what belongs to them, as an archive.",
    providers = [],
)
