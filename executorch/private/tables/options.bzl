"""Values that the options of the actions may have, and names of files.

Written by `bazel run //tools/tables:update`.
"""

visibility("//executorch/...")

GENERATION = "text-generation"

TASKS = [
    "text-generation",
    "audio-classification",
    "automatic-speech-recognition",
    "depth-estimation",
    "feature-extraction",
    "fill-mask",
    "image-classification",
    "image-feature-extraction",
    "image-segmentation",
    "object-detection",
    "question-answering",
    "text-classification",
    "token-classification",
]

# Those whose models take nothing but texts.
TEXT_TASKS = ["text-generation", "text-classification"]

DTYPES = ["auto", "float32", "float16", "bfloat16"]

INPUT_FORMS = ["input_ids", "inputs_embeds"]

LOGITS = ["last", "all"]

CUSTOM_OPS = ["custom_kv_cache", "custom_sdpa"]

# Their kernels, as the runtime names them.
CUSTOM_KERNELS = ["llama::update_cache.out", "llama::custom_sdpa.out"]

QUANTIZATIONS = ["8da4w", "8da8w", "4w", "8w"]

# Those that store weights in groups.
GROUPED_QUANTIZATIONS = ["8da4w", "4w"]

EMBEDDING_QUANTIZATIONS = ["4w", "8w"]

# Schemes of torchao that no backend here has kernels for, and why.
OTHER_QUANTIZATIONS = {
    "fpa4w": "is for ExecuTorch's Metal backend alone, which lowers on macOS only and is none of the backends here",
}

# What torch.save and its kin write: loading it runs what is inside.
PICKLES = [
    ".bin",
    ".ckpt",
    ".joblib",
    ".pickle",
    ".pkl",
    ".pt",
    ".pth",
]

# In the order of preference: the first that is there is read.
TOKENIZERS = [
    "tokenizer.json",
    "tekken.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
]

# Belong to a tokenizer or to what comes before the model.
COMPANIONS = [
    "added_tokens.json",
    "config_sentence_transformers.json",
    "merges.txt",
    "preprocessor_config.json",
    "processor_config.json",
    "sentence_bert_config.json",
    "special_tokens_map.json",
    "vocab.json",
    "vocab.txt",
]
