"""What the rules know of the backends, so that a mistake is refused before anything is built.

The Python registry (`rules_executorch/backends`) says the same, and a test compares the two.
"""

visibility("//...")

# Name of the backend: dtypes of the programs it takes parts of, quantization schemes of linear
# layers and of embeddings that it has kernels for, and the type of each option.
BACKENDS = {
    "portable": struct(
        dtypes = ["float32", "float16", "bfloat16"],
        schemes = [],
        embedding_schemes = [],
        options = {},
    ),
    "xnnpack": struct(
        dtypes = ["float32", "float16"],
        schemes = ["8da4w", "8da8w"],
        embedding_schemes = ["4w", "8w"],
        options = {
            "non_static_weights": "bool",
            "per_op_mode": "bool",
        },
    ),
}

# Backends whose programs the runtime of the toolchain runs on the machine of a build.
HOST_BACKENDS = ["portable", "xnnpack", "openvino"]
