"""A model for every device of the catalogue that lowers from registry packages."""

load("//executorch:defs.bzl", "executorch_lower", "executorch_model")
load(":device_group.bzl", "device_group")

visibility([
    "//models",
    "//tests/devices",
])

_DEVICES = "//executorch/devices:"

# For backends that take fixed shapes only: one token at a time, as the LLM runner then decodes.
_FIXED = {
    "dynamic_seq_len": False,
    "max_seq_len": 1,
}

# Devices that hold a language model, and what their export has different.
_GENERATION = {
    "android_arm64_vulkan": {},
    "android_arm64_xnnpack": {},
    "host_arm64_xnnpack": {},
    "host_x86_64_openvino": _FIXED,
    "host_x86_64_xnnpack": {},
    "ios_arm64_coreml_fp16": {},
    "ios_arm64_coreml_fp16_ne": {},
    "ios_arm64_coreml_fp32": {},
    "ios_arm64_coreml_int8": {},
    "ios_arm64_xnnpack": {},
    "macos_arm64_coreml_fp16": {},
    "macos_arm64_coreml_fp32": {},
    "macos_arm64_coreml_int8": {},
    "macos_arm64_mlx": {},
    "portable": {},
    "tosa_fp32": _FIXED,
    "webgpu": {},
}

# Devices that hold models without a cache, in int8: a tiny classifier of images stands in.
_SMALL = [
    "cortex_m55",
    "ethos_u55_128",
    "ethos_u55_256",
    "ethos_u65_256",
    "ethos_u85_256",
    "tosa_int8",
]

# Devices that nothing is lowered for here, and why.
_LEFT_OUT = {
    "mediatek_mt6989": "needs MediaTek's NeuroPilot Express SDK",
    "mediatek_mt6991": "needs MediaTek's NeuroPilot Express SDK",
    "qualcomm_sm8650": "needs Qualcomm's AI Engine Direct SDK",
    "qualcomm_sm8750": "needs Qualcomm's AI Engine Direct SDK",
    "samsung_e9955": "needs Samsung's Exynos AI LiteCore SDK",
    "samsung_e9965": "needs Samsung's Exynos AI LiteCore SDK",
}

# All devices that a program is lowered for.
DEVICES = list(_GENERATION) + _SMALL

def all_devices(name, model, small, max_cache_len, max_seq_len, tags = [], **kwargs):
    """Declares NAME, a group of the programs for all devices, and NAME_on_DEVICE for each of them.

    Args:
        name: name of the group.
        model: an `hf_model` that generates text.
        small: an `executorch_export` for the devices that hold no language model.
        max_cache_len: positions of the cache.
        max_seq_len: tokens of a call, where the length of a call varies.
        tags: of all targets.
        **kwargs: other arguments of `executorch_model`.
    """
    executorch_model(
        name = name + "_on",
        devices = {_DEVICES + device: attrs for device, attrs in _GENERATION.items()},
        max_cache_len = max_cache_len,
        max_seq_len = max_seq_len,
        model = model,
        tags = tags,
        **kwargs
    )
    for device in _SMALL:
        executorch_lower(
            name = "{}_on_{}".format(name, device),
            device = _DEVICES + device,
            exported = small,
            memory = "2g",
            tags = tags,
        )
    device_group(
        name = name,
        left_out = {_DEVICES + device: why for device, why in _LEFT_OUT.items()},
        programs = ["{}_on_{}".format(name, device) for device in DEVICES],
        tags = tags,
    )
