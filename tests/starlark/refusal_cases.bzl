"""What a device refuses of an export, for the rules in Starlark and the commands in Python.

The values are literals of both languages. A case has the backend and `options` of the device, the
task of the model, attributes of the export (`export`) and of the lowering (`lower`), and the words
that both errors contain; a case without words is accepted by both.
"""

visibility("private")

DEVICE_CASES = {
    "unknown_option": {
        "backend": "xnnpack",
        "options": {"compute_units": "all"},
        "words": ["The backend xnnpack has no option", "compute_units", "non_static_weights, per_op_mode, scheme."],
    },
    "value_of_an_option": {
        "backend": "coreml",
        "options": {"compute_units": "npu"},
        "words": ["compute_units", "npu", "cpu_and_ne"],
    },
    "type_of_an_option": {
        "backend": "xnnpack",
        "options": {"per_op_mode": "yes"},
        "words": ["per_op_mode", "of the backend xnnpack", "yes"],
    },
}

LOWER_CASES = {
    "text": {
        "backend": "xnnpack",
        "task": "text-generation",
        "words": [],
    },
    "dtype": {
        "backend": "xnnpack",
        "export": {"dtype": "bfloat16"},
        "task": "text-generation",
        "words": ["takes nothing", "xnnpack", "bfloat16", "dtype = \"float32\"", "allow_undelegated = True"],
    },
    "dtype_allowed": {
        "backend": "xnnpack",
        "export": {"dtype": "bfloat16"},
        "lower": {"allow_undelegated": True},
        "task": "text-generation",
        "words": [],
    },
    "sdk": {
        "backend": "qualcomm",
        "task": "image-classification",
        "words": ["SDK", "never downloaded", "sdk_root"],
    },
    "external_data": {
        "backend": "tosa",
        "lower": {"external_data": True},
        "task": "image-classification",
        "words": ["compiles the weights into its delegates", "mlx, portable, vulkan, webgpu, xnnpack."],
    },
    "external_data_taken": {
        "backend": "mlx",
        "lower": {"external_data": True},
        "task": "text-generation",
        "words": [],
    },
    "generation": {
        "backend": "cortex_m",
        "export": {"dynamic_seq_len": False},
        "task": "text-generation",
        "words": ["generates text", "backend cortex_m is for programs without a cache"],
    },
    "varying_length": {
        "backend": "mediatek",
        "task": "text-generation",
        "words": ["varies", "backend mediatek takes fixed shapes only", "dynamic_seq_len = False"],
    },
    "varying_length_of_a_classifier": {
        "backend": "mediatek",
        "task": "text-classification",
        "words": ["varies", "backend mediatek takes fixed shapes only", "dynamic_seq_len = False"],
    },
    "length_of_one": {
        "backend": "mediatek",
        "export": {"max_seq_len": 1},
        "task": "text-classification",
        "words": [],
    },
    "fixed_length": {
        "backend": "mediatek",
        "export": {"dynamic_seq_len": False},
        "task": "text-classification",
        "words": [],
    },
    "images_have_no_length": {
        "backend": "mediatek",
        "task": "image-classification",
        "words": [],
    },
    "scheme": {
        "backend": "xnnpack",
        "export": {"quantization": "8w"},
        "task": "text-generation",
        "words": ["has no kernels", "quantization = \"8w\"", "8da4w", "8da8w"],
    },
    "scheme_of_embeddings": {
        "backend": "vulkan",
        "export": {"quantization_embedding": "8w"},
        "task": "text-generation",
        "words": ["has no kernels", "quantization_embedding = \"8w\"", "4w"],
    },
    "no_schemes": {
        "backend": "portable",
        "export": {"quantization": "8da4w"},
        "task": "text-generation",
        "words": ["has no kernels", "Export without quantization, or choose"],
    },
    "groups": {
        "backend": "mlx",
        "export": {"quantization": "4w", "quantization_group_size": 24},
        "task": "text-generation",
        "words": ["backend mlx takes groups of 32 weights or multiples of it", "quantization_group_size = 32"],
    },
    "groups_of_a_scheme_without": {
        "backend": "mlx",
        "export": {"quantization": "8w", "quantization_group_size": 24},
        "task": "text-generation",
        "words": [],
    },
    "quantized_twice": {
        "backend": "xnnpack",
        "export": {"quantization": "8da4w"},
        "options": {"scheme": "int8_dynamic"},
        "task": "text-generation",
        "words": ["has quantized weights", "would quantize them again", "Export without quantization"],
    },
    "calibrated_generation": {
        "backend": "xnnpack",
        "lower": {"calibration": "samples.safetensors"},
        "options": {"scheme": "int8"},
        "task": "text-generation",
        "words": ["is calibrated, which takes a program", "without a cache", "int8_dynamic"],
    },
    "calibrated_varying_length": {
        "backend": "xnnpack",
        "lower": {"calibration": "samples.safetensors"},
        "options": {"scheme": "int8"},
        "task": "text-classification",
        "words": ["is calibrated, which takes a program of fixed shapes", "dynamic_seq_len = False", "int8_dynamic"],
    },
    "calibrated": {
        "backend": "xnnpack",
        "export": {"dynamic_seq_len": False},
        "lower": {"calibration": "samples.safetensors"},
        "options": {"scheme": "int8"},
        "task": "text-classification",
        "words": [],
    },
    "calibration_missing": {
        "backend": "xnnpack",
        "options": {"scheme": "int8"},
        "task": "image-classification",
        "words": ["takes its ranges from inputs, and none are given.", "calibration = \"samples.safetensors\""],
    },
    "calibration_unused": {
        "backend": "xnnpack",
        "lower": {"calibration": "samples.safetensors"},
        "options": {"scheme": "int8_dynamic"},
        "task": "image-classification",
        "words": ["and nothing of", "is calibrated.", "choose a device whose scheme needs it."],
    },
    "random_calibration": {
        "backend": "ethos_u",
        "task": "image-classification",
        "words": [],
    },
}
