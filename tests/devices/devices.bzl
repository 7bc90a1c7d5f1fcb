"""A tiny program for every device of the catalogue that lowers from registry packages."""

load("//models:all_devices.bzl", _DEVICES = "DEVICES")

visibility(["//tests/devices"])

DEVICES = _DEVICES

def device_programs(name):
    """Declares NAME_DEVICE for each of `DEVICES`.

    Args:
        name: what the targets' names begin with.
    """
    for device in DEVICES:
        native.alias(
            name = "{}_{}".format(name, device),
            actual = "//models:tiny_llama_all_devices_on_" + device,
        )
