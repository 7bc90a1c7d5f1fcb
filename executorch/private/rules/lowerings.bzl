"""Lowering for several devices at once, and once for those that agree.

Which devices agree is known when targets are analysed and not when a macro runs: a device is any
target. So `executorch_lowerings` registers one action for each distinct lowering, and
`executorch_program` is the program of one device, links to what its lowering wrote.
"""

load("//executorch/private/actions:command.bzl", "TOOLCHAIN_TYPE")
load("//executorch/private/actions:transitions.bzl", "TRANSITION_ATTRS", "normalize")
load("//executorch/private/actions:validation.bzl", "validate_operators")
load("//executorch/private/providers:executorch_device_info.bzl", "ExecutorchDeviceInfo")
load("//executorch/private/providers:executorch_program_info.bzl", "ExecutorchProgramInfo")
load("//executorch/private/providers:exported_program_info.bzl", "ExportedProgramInfo")
load("//executorch/private/providers:lowerings_info.bzl", "LoweringsInfo")
load("//executorch/private/rules:lower.bzl", "LOWER_ATTRS", "lower_for_device", "lowered_files", "lowered_groups", "lowered_program_info", "lowering_key")

visibility("//executorch")

def _export_for(ctx, device):
    """The graph of a device, one with the operators of the LLM extension if its runtime has them."""
    if device.custom_ops and ctx.attr.exported_custom_ops:
        return ctx.attr.exported_custom_ops[ExportedProgramInfo]
    return ctx.attr.exported[ExportedProgramInfo]

def _executorch_lowerings_impl(ctx):
    by_key = {}
    by_device = {}
    for target in ctx.attr.devices:
        device = target[ExecutorchDeviceInfo]
        exported = _export_for(ctx, device)
        key = lowering_key(ctx, device, exported)
        if key not in by_key:
            name = "{}/{}".format(ctx.label.name, device.label.name)
            files = lower_for_device(ctx, device, exported, name)
            by_key[key] = struct(device = device, exported = exported, files = files)
        files = by_key[key].files
        by_device[str(device.label)] = struct(
            checks = validate_operators(ctx, device, files.manifest, "{}/{}".format(ctx.label.name, device.label.name)),
            device = device,
            exported = exported,
            files = files,
        )
    return [
        DefaultInfo(files = depset([lowered.files.program for lowered in by_key.values()])),
        LoweringsInfo(
            devices = by_device,
            distinct = by_key.values(),
        ),
    ]

executorch_lowerings = rule(
    implementation = _executorch_lowerings_impl,
    attrs = LOWER_ATTRS | {
        "devices": attr.label_list(
            mandatory = True,
            providers = [ExecutorchDeviceInfo],
            doc = "The devices to lower for.",
        ),
        "exported_custom_ops": attr.label(
            providers = [ExportedProgramInfo],
            doc = "In place of `exported` for devices with `custom_ops`.",
        ),
    },
    cfg = normalize,
    doc = "Lowers an exported program for several devices.",
    provides = [LoweringsInfo],
    toolchains = [TOOLCHAIN_TYPE],
)

_SUFFIXES = {
    "data": ".ptd",
    "manifest": ".manifest.json",
    "operators": ".operators.yaml",
    "options": ".options.json",
    "program": ".pte",
    "provenance": ".provenance.json",
    "report": ".report.md",
    "sbom": ".sbom.cdx.json",
    "timings": ".timings.json",
}

def _executorch_program_impl(ctx):
    lowered = ctx.attr.lowerings[LoweringsInfo]
    mine = lowered.devices[str(ctx.attr.device[0][ExecutorchDeviceInfo].label)]
    links = {}
    for kind, suffix in _SUFFIXES.items():
        file = getattr(mine.files, kind)
        links[kind] = None
        if file:
            links[kind] = ctx.actions.declare_file(ctx.label.name + suffix)
            ctx.actions.symlink(output = links[kind], target_file = file)
    links = struct(**links)
    files = lowered_files(links)
    return [
        DefaultInfo(files = files, runfiles = ctx.runfiles(transitive_files = files)),
        OutputGroupInfo(_validation = mine.checks, **lowered_groups(links)),
        lowered_program_info(ctx, mine.device, mine.exported, mine.files),
    ]

executorch_program = rule(
    implementation = _executorch_program_impl,
    attrs = TRANSITION_ATTRS | {
        "device": attr.label(
            # As `lowerings` has it, for a device that is chosen by the configuration.
            cfg = normalize,
            mandatory = True,
            providers = [ExecutorchDeviceInfo],
            doc = "One of the devices of `lowerings`.",
        ),
        "lowerings": attr.label(
            mandatory = True,
            providers = [LoweringsInfo],
        ),
    },
    doc = "The program for one device.",
    provides = [ExecutorchProgramInfo],
)
