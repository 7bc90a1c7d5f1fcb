"""Values that the options of the actions may have; a test compares them with the schemas."""

visibility("//executorch/...")

GENERATION = "text-generation"

TASKS = [
    GENERATION,
    "feature-extraction",
    "image-classification",
    "text-classification",
]

DTYPES = ["auto", "float32", "float16", "bfloat16"]

INPUT_FORMS = ["input_ids", "inputs_embeds"]

LOGITS = ["last", "all"]

CUSTOM_OPS = ["custom_kv_cache", "custom_sdpa"]

# Their kernels, as the runtime names them.
CUSTOM_KERNELS = ["llama::update_cache.out", "llama::custom_sdpa.out"]

QUANTIZATIONS = ["8da4w", "8da8w", "4w", "8w"]

EMBEDDING_QUANTIZATIONS = ["4w", "8w"]

# Schemes of torchao that no backend here has kernels for, and why.
OTHER_QUANTIZATIONS = {
    "fpa4w": "is for ExecuTorch's Metal backend alone, which lowers on macOS only and is none of the backends here",
}
