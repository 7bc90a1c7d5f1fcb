"""`executorch_export`: exports a model with `torch.export`, once for all devices.

```starlark
load("@rules_executorch//executorch:defs.bzl", "executorch_export")

executorch_export(
    name = "smollm2_export",
    model = ":smollm2",
    max_cache_len = 2048,
    max_seq_len = 512,
)
```

The outputs are the exported program, `NAME.pt2`, and its signature, `NAME.json`. The export reads
the model's configuration and these options, not its weights: an export is the same for every
platform and every fine-tune of an architecture. New weights in the same model target do not export
again; another target has an export of its own, with the same bytes.

Output groups: `options` (the options as the command line takes them: `schema export`),
`timings` (seconds and memory of each stage, and the one output that differs from run to run:
`schema timings`).

Provider: `ExportedProgramInfo`.
"""

load("//executorch/private/actions:shared.bzl", "shared_attributes")
load(
    "//executorch/private/rules:export.bzl",
    "executorch_export_shared",
    _executorch_export = "executorch_export",
)

def executorch_export(
        name,
        model,
        max_cache_len = 0,
        image_size = 0,
        batch_size = 1,
        max_seq_len = 0,
        dynamic_seq_len = True,
        dtype = "float32",
        input_form = "input_ids",
        logits = "last",
        custom_ops = [],
        quantization = "",
        quantization_group_size = 32,
        quantization_embedding = "",
        quantization_allow_skipped = False,
        memory = "4g",
        remote = "default",
        **kwargs):
    """Exports a model with `torch.export`.

    Args:
        name: name of the target.
        model: the `hf_model` to export.
        max_cache_len: positions that the static cache holds: prompt and answer together. At most the
            model's own number of positions. A model that generates text has to have it, and no
            other may.
        image_size: height and width of the images that a model of images takes. 0 means the size
            that its configuration names.
        batch_size: sequences computed at once. ExecuTorch's LLM runner takes 1.
        max_seq_len: the longest piece of input that one call takes, or its fixed length. Runners
            split a longer prompt. It bounds the memory that the program plans. 0 means
            `max_cache_len`, or 1 for a fixed length.
        dynamic_seq_len: whether the input may have any length up to `max_seq_len`, or has just
            that one.
        dtype: of parameters, cache and activations: `auto`, which is the checkpoint's, `float32`,
            `float16` or `bfloat16`.
        input_form: what the program takes: `input_ids` or `inputs_embeds`.
        logits: `last` gives the logits of the last position, (batch, 1, vocabulary), which is all
            that generation needs; `all` gives those of every position.
        custom_ops: list of ExecuTorch's own operators to use in place of torch's: `custom_kv_cache`,
            `custom_sdpa`. For runtimes that have them, as those for CPUs do: apps in C++ link
            `@rules_executorch//executorch/runtime:llm_custom_ops`.
        quantization: how the weights of linear layers are stored: `8da4w`, `8da8w`, `4w` or `8w`
            (bits of weights, after `8da` with activations quantized to 8 bits as the program runs).
            Empty means not quantized.
        quantization_group_size: weights that share a scale, for grouped schemes. It has to divide
            the layers' widths.
        quantization_embedding: how the embeddings are stored: `4w` or `8w`. Empty means not
            quantized. An output head that shares the embedding's matrix gets one of its own, which
            `quantization` alone decides about.
        quantization_allow_skipped: whether layers that the scheme does not fit may stay as they are.
        memory: that the action may take: `1g`, `2g`, `4g` and so on up to `256g`. Bazel starts no
            more actions at once than fit into the machine.
        remote: what a remote cache and remote execution may do, where a build has them: `default`
            is everything; with `no_upload` the action runs on this machine and its outputs are not
            uploaded, but are downloaded where the cache has them; with `local` neither. For outputs
            that are made faster than they are sent.
        **kwargs: attributes that every rule has, such as `visibility`.
    """
    shared = shared_attributes(name, kwargs)
    executorch_export_shared(
        model = model,
        max_cache_len = max_cache_len,
        image_size = image_size,
        batch_size = batch_size,
        max_seq_len = max_seq_len,
        dynamic_seq_len = dynamic_seq_len,
        dtype = dtype,
        input_form = input_form,
        logits = logits,
        custom_ops = custom_ops,
        quantization = quantization,
        quantization_group_size = quantization_group_size,
        quantization_embedding = quantization_embedding,
        quantization_allow_skipped = quantization_allow_skipped,
        memory = memory,
        remote = remote,
        **shared
    )
    _executorch_export(name = name, shared = shared["name"], **kwargs)
