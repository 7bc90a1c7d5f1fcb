"""The provider of `executorch_export`."""

visibility("//executorch/...")

DOC = """A model exported by `torch.export`: a graph, without the weights' values.

It depends on the model's configuration and on the export's options alone: not on a platform, and
not on what is inside the weights files.
"""

FIELDS = {
    "label": "Label of the `executorch_export` target.",
    "program": "File: the exported program, `.pt2`, canonical bytes.",
    "signature": "File: JSON with the inputs, outputs, dynamic dimensions and cache of the program.",
    "options": "File: JSON with the options, valid against `schema export`.",
    "max_cache_len": "int: positions the static cache holds; 0 for a model without one.",
    "dynamic_seq_len": "bool: whether the sequence length may vary from call to call.",
    "dtype": "string: dtype of parameters, cache and activations; `auto` is the checkpoint's.",
    "input_form": "string: `input_ids` or `inputs_embeds`.",
    "quantization": "string: scheme of the linear layers, or empty.",
    "quantization_group_size": "int: weights that share a scale, for schemes with groups.",
    "quantization_embedding": "string: scheme of the embeddings, or empty.",
    "model": "`HfModelInfo` of the model that was exported.",
}

ExportedProgramInfo = provider(doc = DOC, fields = FIELDS)
