"""`hf_model`: a checkpoint of the Hugging Face hub, checked and described.

```starlark
load("@rules_executorch//executorch:defs.bzl", "hf_model")

hf_model(
    name = "smollm2",
    srcs = glob(["smollm2/*.json", "smollm2/*.safetensors"]),
    task = "text-generation",
)
```

The target's files are the checkpoint's own, not copies. Building it builds nothing; building
something that uses it first checks the checkpoint: every shard that the index wants is there, the
headers are sound, nothing is pickled, no code comes along, the architecture is known. Weights may
be safetensors, also sharded, or one GGUF file; from a GGUF, the configuration and the tokenizer
are rebuilt.

Output group `description`: `model.json`, what is known about the model, and `config.json`, the
configuration reduced to what shapes the graph (and for a GGUF the rebuilt tokenizer).

Provider: `HfModelInfo`.
"""

load("//executorch/private:hf_model.bzl", _hf_model = "hf_model")

hf_model = _hf_model
