"""The provider of `hf_model`."""

visibility("//executorch/...")

DOC = """A checkpoint in the layout of the Hugging Face hub, checked and described.

Everything that follows reads the model through this provider. The description and the normalized
configuration are outputs of the action that checks the checkpoint, so that nothing starts on a
checkpoint that is incomplete or unsafe.
"""

FIELDS = {
    "label": "Label of the `hf_model` target.",
    "task": "The task, in the hub's words, such as `text-generation`; empty for what config.json says.",
    "format": "`safetensors` or `gguf`.",
    "files": "Depset of Files: the checkpoint's files, as declared.",
    "weights": "List of Files: the safetensors files with their index, or the one GGUF file.",
    "weight_bytes": "int: size of the files with weights, where their repository knows it, or 0.",
    "config": "File: `config.json` reduced to the keys that shape the graph. Two fine-tunes of one " +
              "architecture have the same bytes here, and so the same export.",
    "description": "File: `model.json`, what the rules know about the model (end-of-sequence ids, " +
                   "vocabulary, tokenizer, positions, parameters, licence).",
    "license": "string: the licence that the target declares, or an empty one.",
    "license_files": "List of Files: texts of licences and notices.",
    "package_url": "string: package URL that the target declares, or an empty one.",
    "modules": "Dict of Files by their name below the checkpoint's root: what is in the folders of a model of " +
               "sentence-transformers, such as `1_Pooling/config.json`.",
    "readme": "File or None: the model card.",
    "source": "File or None: `huggingface.json`, the repository and the revision that the files come from.",
    "tokenizer": "File or None: `tokenizer.json`, or the checkpoint's other tokenizer file.",
    "tokenizer_config": "File or None: `tokenizer_config.json`.",
    "chat_template": "File or None: `chat_template.jinja`, where the template is not in `tokenizer_config`.",
    "generation_config": "File or None: `generation_config.json`.",
}

HfModelInfo = provider(doc = DOC, fields = FIELDS)
