"""Checks of a program that a build of it runs, beside what needs the program."""

load("//executorch/private/actions:command.bzl", "command_args", "run_command")
load("//executorch/private/checks:limits.bzl", "operator_arguments")
load("//executorch/private/checks:messages.bzl", "display_label")

visibility("//executorch/private/rules")

def validate_operators(ctx, device, manifest, name):
    """Declares the check that the app's runtime has every operator that a program calls.

    It does not change the program, so devices that differ in their runtimes alone share a lowering.

    Args:
        ctx: the context of a rule with `COMMAND_ATTRS` and the toolchain.
        device: `ExecutorchDeviceInfo`.
        manifest: File, of the program.
        name: name of the output, without `.checked.txt`.

    Returns:
        A depset of Files for the output group `_validation`; empty if nothing is known of the runtime.
    """
    if not device.operators:
        return depset()
    checked = ctx.actions.declare_file(name + ".checked.txt")
    args = command_args(ctx, "budget")
    args.add("--manifest", manifest)
    args.add("--device", display_label(device.label))
    for argument in operator_arguments(device.operators):
        args.add(argument)
    args.add("--out", checked)
    run_command(
        ctx,
        args,
        mnemonic = "ExecutorchCheck",
        progress_message = "Checking the operators of %{label}",
        inputs = [manifest] + device.operators.files,
        outputs = [checked],
        memory = "1g",
    )
    return depset([checked])
