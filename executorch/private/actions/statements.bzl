"""The actions that write SBOM and provenance of a program."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("//executorch/private/actions:command.bzl", "command_args", "command_toolchain", "run_command")
load("//executorch/private/checks:messages.bzl", "display_label")

visibility("//executorch/private/rules")

STATEMENT_ATTRS = {
    "_builder_id": attr.label(
        default = "//executorch/settings:builder_id",
    ),
}

def _shared(ctx, command, device, model, program, manifest):
    """Arguments and inputs that both actions have."""
    marker = command_toolchain(ctx, device.packages).marker
    args = command_args(ctx, command)
    args.add("--name", program.basename.removesuffix(".pte"))
    args.add("--manifest", manifest)
    args.add("--marker", marker)
    inputs = [manifest, marker]
    if model.source:
        args.add("--source", model.source)
        inputs.append(model.source)
    elif model.package_url:
        args.add("--package-url", model.package_url)
    return args, inputs

def declare_sbom(ctx, device, model, program, manifest, name):
    """Declares the CycloneDX ML-BOM of a program; nothing builds it unless it is asked for.

    Args:
        ctx: the context of a rule with `COMMAND_ATTRS` and the toolchain.
        device: `ExecutorchDeviceInfo` that it was lowered for.
        model: `HfModelInfo`.
        program: File, `.pte`; not an input.
        manifest: File.
        name: name of the output, without `.sbom.cdx.json`.

    Returns:
        A File.
    """
    sbom = ctx.actions.declare_file(name + ".sbom.cdx.json")
    args, inputs = _shared(ctx, "sbom", device, model, program, manifest)
    args.add("--model-name", model.label.name)
    if model.license:
        args.add("--license", model.license)
    if model.readme:
        args.add("--readme", model.readme)
        inputs.append(model.readme)
    if model.format == "gguf":
        args.add_all("--gguf", model.weights)
        inputs += model.weights
    args.add("--out", sbom)
    run_command(
        ctx,
        args,
        mnemonic = "ExecutorchSbom",
        progress_message = "Writing the SBOM of %{label}",
        inputs = inputs,
        outputs = [sbom],
        memory = "1g",
        packages = device.packages,
    )
    return sbom

def declare_provenance(ctx, device, model, program, data, manifest, name):
    """Declares the in-toto statement of how a program was made; nothing builds it unless asked.

    Args:
        ctx: the context of a rule with `COMMAND_ATTRS`, `STATEMENT_ATTRS` and the toolchain.
        device: `ExecutorchDeviceInfo` that it was lowered for.
        model: `HfModelInfo`.
        program: File, `.pte`; not an input.
        data: File, `.ptd`, or None.
        manifest: File.
        name: name of the output, without `.provenance.json`.

    Returns:
        A File.
    """
    provenance = ctx.actions.declare_file(name + ".provenance.json")
    args, inputs = _shared(ctx, "provenance", device, model, program, manifest)
    args.add("--lowered", display_label(ctx.label))
    args.add("--builder", ctx.attr._builder_id[BuildSettingInfo].value)
    if data:
        args.add_all("--data", [data])
        inputs.append(data)
    args.add("--out", provenance)
    run_command(
        ctx,
        args,
        mnemonic = "ExecutorchProvenance",
        progress_message = "Stating how %{label} was made",
        inputs = inputs,
        outputs = [provenance],
        memory = "1g",
        packages = device.packages,
    )
    return provenance
