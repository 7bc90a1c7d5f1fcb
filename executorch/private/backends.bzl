"""What the rules know of the backends, so that a mistake is refused before anything is built.

The Python registry (`rules_executorch/backends`) says the same, and a test compares the two.
"""

visibility("//...")

# Name of the backend: dtypes of the programs it takes parts of, and the type of each option.
BACKENDS = {
    "portable": struct(
        dtypes = ["float32", "float16", "bfloat16"],
        options = {},
    ),
    "xnnpack": struct(
        dtypes = ["float32", "float16"],
        options = {
            "non_static_weights": "bool",
            "per_op_mode": "bool",
        },
    ),
}
