"""`tiny_checkpoint`: a checkpoint of random weights, to test with.

```starlark
load("@rules_executorch//executorch:defs.bzl", "hf_model", "tiny_checkpoint")

tiny_checkpoint(
    name = "tiny_llama_checkpoint",
    config = "tiny_llama.json",
)

hf_model(
    name = "tiny_llama",
    srcs = [":tiny_llama_checkpoint"],
)
```

From a `config.json` it makes, in a folder `NAME`, what a checkpoint on the hub has: `config.json`,
`model.safetensors` (or `shards` of it, with an index), `tokenizer.json` and
`tokenizer_config.json`. The same seed gives the same bytes.
"""

load("//executorch/private/rules:tiny_checkpoint.bzl", _tiny_checkpoint = "tiny_checkpoint")

tiny_checkpoint = _tiny_checkpoint
