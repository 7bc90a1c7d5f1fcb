"""All devices of a package as one target, so that a test can check each of them."""

load("//executorch/private/providers:executorch_device_info.bzl", "ExecutorchDeviceInfo")

visibility([
    "//executorch/devices",
    "//tests/devices",
])

CatalogueInfo = provider(
    "Devices.",
    fields = {"devices": "list of ExecutorchDeviceInfo."},
)

def _executorch_catalogue_impl(ctx):
    return [CatalogueInfo(devices = [target[ExecutorchDeviceInfo] for target in ctx.attr.devices])]

executorch_catalogue = rule(
    implementation = _executorch_catalogue_impl,
    attrs = {"devices": attr.label_list(providers = [ExecutorchDeviceInfo])},
    doc = "Devices.",
    provides = [CatalogueInfo],
)

def catalogue(name):
    """Gathers the `executorch_device` targets that the package has so far.

    Args:
        name: name of the target.
    """
    executorch_catalogue(
        name = name,
        devices = [
            ":" + target
            for target, attributes in native.existing_rules().items()
            if attributes["kind"] == "executorch_device"
        ],
    )
