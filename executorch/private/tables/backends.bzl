"""What the rules know of the backends, so that a mistake is refused before anything is built.

The Python registry (`rules_executorch/backends`) says the same, and a test compares the two.
"""

visibility("//executorch/private/rules")

# Name of the backend: dtypes of the programs it takes parts of; quantization schemes of linear layers
# and of embeddings that it has kernels for; values of its option `scheme` that are calibrated, and
# the one taken without; whether it takes a sequence length that varies, weights in a data file, and
# programs that generate text; and for each option its type or, where few strings will do, those.
BACKENDS = {
    "coreml": struct(
        dtypes = ["float32", "float16"],
        schemes = ["4w", "8w"],
        embedding_schemes = ["4w", "8w"],
        calibrated_schemes = [],
        default_scheme = "",
        dynamic_shapes = True,
        external_data = False,
        generation = True,
        options = {
            "compute_precision": [
                "float16",
                "float32",
            ],
            "compute_units": [
                "all",
                "cpu_and_gpu",
                "cpu_and_ne",
                "cpu_only",
            ],
            "deployment_target": [
                "iOS18",
                "iOS26",
                "macOS15",
                "macOS26",
            ],
            "scheme": ["int8_weights"],
        },
    ),
    "cortex_m": struct(
        dtypes = ["float32"],
        schemes = [],
        embedding_schemes = [],
        calibrated_schemes = ["int8"],
        default_scheme = "int8",
        dynamic_shapes = False,
        external_data = False,
        generation = False,
        options = {
            "scheme": ["int8"],
            "target": [
                "cortex-m0plus",
                "cortex-m3",
                "cortex-m4",
                "cortex-m7",
                "cortex-m33",
                "cortex-m55",
                "cortex-m85",
            ],
        },
    ),
    "ethos_u": struct(
        dtypes = ["float32"],
        schemes = [],
        embedding_schemes = [],
        calibrated_schemes = ["int8"],
        default_scheme = "int8",
        dynamic_shapes = False,
        external_data = False,
        generation = False,
        options = {
            "memory_mode": "string",
            "scheme": ["int8"],
            "system_config": "string",
            "target": [
                "ethos-u55-32",
                "ethos-u55-64",
                "ethos-u55-128",
                "ethos-u55-256",
                "ethos-u65-256",
                "ethos-u65-512",
                "ethos-u85-128",
                "ethos-u85-256",
                "ethos-u85-512",
                "ethos-u85-1024",
                "ethos-u85-2048",
            ],
        },
    ),
    "mediatek": struct(
        dtypes = ["float32"],
        schemes = [],
        embedding_schemes = [],
        calibrated_schemes = [],
        default_scheme = "",
        dynamic_shapes = False,
        external_data = False,
        generation = True,
        options = {
            "platform": [
                "mt6989",
                "mt6991",
                "mt6993",
            ],
        },
    ),
    "mlx": struct(
        dtypes = ["float32", "float16", "bfloat16"],
        schemes = ["4w", "8w"],
        embedding_schemes = ["4w", "8w"],
        calibrated_schemes = [],
        default_scheme = "",
        dynamic_shapes = True,
        external_data = True,
        generation = True,
        options = {},
    ),
    "openvino": struct(
        dtypes = ["float32", "float16"],
        schemes = [],
        embedding_schemes = [],
        calibrated_schemes = [],
        default_scheme = "",
        dynamic_shapes = False,
        external_data = False,
        generation = True,
        options = {
            "device": [
                "CPU",
                "GPU",
                "NPU",
            ],
        },
    ),
    "portable": struct(
        dtypes = ["float32", "float16", "bfloat16"],
        schemes = [],
        embedding_schemes = ["4w", "8w"],
        calibrated_schemes = [],
        default_scheme = "",
        dynamic_shapes = True,
        external_data = True,
        generation = True,
        options = {},
    ),
    "qualcomm": struct(
        dtypes = ["float32", "float16"],
        schemes = [],
        embedding_schemes = [],
        calibrated_schemes = [],
        default_scheme = "",
        dynamic_shapes = False,
        external_data = False,
        generation = True,
        options = {
            "sdk_root": "string",
            "soc": [
                "SM8550",
                "SM8650",
                "SM8750",
            ],
        },
    ),
    "samsung": struct(
        dtypes = ["float32"],
        schemes = [],
        embedding_schemes = [],
        calibrated_schemes = [],
        default_scheme = "",
        dynamic_shapes = False,
        external_data = False,
        generation = True,
        options = {
            "chipset": [
                "E9955",
                "E9965",
            ],
            "sdk_root": "string",
        },
    ),
    "tosa": struct(
        dtypes = ["float32"],
        schemes = [],
        embedding_schemes = [],
        calibrated_schemes = ["int8"],
        default_scheme = "",
        dynamic_shapes = False,
        external_data = False,
        generation = True,
        options = {
            "scheme": ["int8"],
        },
    ),
    "vulkan": struct(
        dtypes = ["float32", "float16"],
        schemes = ["8da4w", "4w"],
        embedding_schemes = ["4w"],
        calibrated_schemes = [],
        default_scheme = "",
        dynamic_shapes = True,
        external_data = True,
        generation = True,
        options = {
            "force_fp16": "bool",
            "require_dynamic_shapes": "bool",
            "skip_bool_tensors": "bool",
            "small_texture_limits": "bool",
            "storage": [
                "texture_3d",
                "texture_2d",
                "buffer",
            ],
        },
    ),
    "webgpu": struct(
        dtypes = ["float32", "float16"],
        schemes = ["8da4w", "4w"],
        embedding_schemes = ["4w"],
        calibrated_schemes = [],
        default_scheme = "",
        dynamic_shapes = True,
        external_data = True,
        generation = True,
        options = {
            "force_fp16": "bool",
            "require_dynamic_shapes": "bool",
            "skip_bool_tensors": "bool",
            "small_texture_limits": "bool",
            "storage": [
                "texture_3d",
                "texture_2d",
                "buffer",
            ],
        },
    ),
    "xnnpack": struct(
        dtypes = ["float32", "float16"],
        schemes = ["8da4w", "8da8w"],
        embedding_schemes = ["4w", "8w"],
        calibrated_schemes = ["int8"],
        default_scheme = "",
        dynamic_shapes = True,
        external_data = True,
        generation = True,
        options = {
            "non_static_weights": "bool",
            "per_op_mode": "bool",
            "scheme": [
                "int8",
                "int8_dynamic",
            ],
        },
    ),
}

# Backends whose programs call kernels on the CPU, and whether an app's runtime is taken to have
# those of ExecuTorch's LLM extension where a device says nothing of it: ExecuTorch's packages for
# phones have them, and the runtime of a microcontroller does not.
CPU_BACKENDS = {
    "portable": False,
    "xnnpack": True,
}

# Backends whose programs the runtime of the toolchain runs on the machine of a build.
HOST_BACKENDS = ["portable", "xnnpack", "openvino"]

# Of backends with calibrated schemes, those that random inputs do not do for.
CALIBRATED_WITH_DATA = ["xnnpack"]

# What the group size of a quantized weight has to be a multiple of; 1 for other backends.
GROUP_MULTIPLES = {
    "mlx": 32,
    "xnnpack": 32,
}

# Schemes that store weights in groups.
GROUPED_SCHEMES = ["4w", "8da4w"]
