"""Programs for devices as one target, and what it leaves out."""

load("//executorch:providers.bzl", "ExecutorchDeviceInfo", "ExecutorchProgramInfo")

visibility([
    "//models",
    "//tests/devices",
])

DeviceGroupInfo = provider(
    "Programs for devices.",
    fields = {
        "devices": "list of the Labels of the devices that there is a program for.",
        "left_out": "dict from the Label of a device that there is none for to the reason.",
    },
)

def _device_group_impl(ctx):
    return [
        DefaultInfo(files = depset(transitive = [target[DefaultInfo].files for target in ctx.attr.programs])),
        OutputGroupInfo(
            manifest = depset(transitive = [target[OutputGroupInfo].manifest for target in ctx.attr.programs]),
        ),
        DeviceGroupInfo(
            devices = [target[ExecutorchProgramInfo].device.label for target in ctx.attr.programs],
            left_out = {target.label: why for target, why in ctx.attr.left_out.items()},
        ),
    ]

device_group = rule(
    implementation = _device_group_impl,
    attrs = {
        "left_out": attr.label_keyed_string_dict(
            providers = [ExecutorchDeviceInfo],
            doc = "Devices without a program, and why.",
        ),
        "programs": attr.label_list(
            mandatory = True,
            providers = [ExecutorchProgramInfo],
            doc = "One program for each device.",
        ),
    },
    doc = "Programs for devices.",
    provides = [DeviceGroupInfo],
)
