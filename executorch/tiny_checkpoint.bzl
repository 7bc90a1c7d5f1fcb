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

load("//executorch/private/actions:shared.bzl", "shared_attributes")
load(
    "//executorch/private/rules:tiny_checkpoint.bzl",
    "executorch_tiny_checkpoint",
    "executorch_tiny_checkpoint_shared",
)

def tiny_checkpoint(
        name,
        config,
        generation_config = None,
        seed = 0,
        shards = 1,
        task = "text-generation",
        dtype = "float32",
        **kwargs):
    """Makes a checkpoint of random weights, for tests.

    Args:
        name: name of the target and of the folder.
        config: `config.json` of the architecture.
        generation_config: `generation_config.json`; by default the checkpoint has none.
        seed: of the weights: the same seed gives the same bytes.
        shards: number of safetensors files; with more than one there is an index as well.
        task: what the model is for, in the hub's words, as for `hf_model`.
        dtype: of the weights: `auto`, which is the config's, `float32`, `float16` or `bfloat16`.
        **kwargs: attributes that every rule has, such as `visibility`.
    """
    shared = shared_attributes(name, kwargs)
    executorch_tiny_checkpoint_shared(
        config = config,
        generation_config = generation_config,
        seed = seed,
        shards = shards,
        task = task,
        dtype = dtype,
        **shared
    )
    executorch_tiny_checkpoint(name = name, shared = shared["name"], **kwargs)
