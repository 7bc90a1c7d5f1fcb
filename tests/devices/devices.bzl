"""A tiny program for every device of the catalogue that lowers from registry packages."""

load("//executorch:defs.bzl", "executorch_lower")

visibility(["//tests/devices"])

# Device to the export that it can hold. Those that another one has the same lowering as are left out.
DEVICES = {
    "android_arm64_vulkan": "//models:tiny_llama_export",
    "cortex_m55": "//models:tiny_resnet_export",
    "ethos_u55_128": "//models:tiny_resnet_export",
    "ethos_u55_256": "//models:tiny_resnet_export",
    "ethos_u65_256": "//models:tiny_resnet_export",
    "ethos_u85_256": "//models:tiny_resnet_export",
    "host_x86_64_openvino": "//models:tiny_llama_fixed_export",
    "host_x86_64_xnnpack": "//models:tiny_llama_export",
    "ios_arm64_coreml_fp16": "//models:tiny_llama_export",
    "ios_arm64_coreml_fp32": "//models:tiny_llama_export",
    "ios_arm64_coreml_int8": "//models:tiny_llama_export",
    "macos_arm64_mlx": "//models:tiny_llama_export",
    "portable": "//models:tiny_llama_export",
    "tosa_fp32": "//models:tiny_llama_fixed_export",
    "tosa_int8": "//models:tiny_resnet_export",
    "webgpu": "//models:tiny_llama_export",
}

def device_programs(name):
    """Declares NAME_DEVICE for each of `DEVICES`.

    Args:
        name: what the targets' names begin with.
    """
    for device, exported in DEVICES.items():
        executorch_lower(
            name = "{}_{}".format(name, device),
            device = "//executorch/devices:" + device,
            exported = exported,
            memory = "2g",
        )
