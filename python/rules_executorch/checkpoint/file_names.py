"""Names of files of a checkpoint, for the rules as well: nothing here loads torch.

`bazel run //tools/tables:update` writes what the rules know of them in Starlark.
"""

PICKLES = (".bin", ".ckpt", ".joblib", ".pickle", ".pkl", ".pt", ".pth")
"""What torch.save and its kin write. Loading one runs whatever program is inside."""

SENTENCEPIECE = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model")
"""Tokenizers of sentencepiece."""

TOKENIZERS = ("tokenizer.json", "tekken.json", *SENTENCEPIECE)
"""Tokenizers in the order of preference: the first that is there is read."""

COMPANIONS = (
    "added_tokens.json",
    "config_sentence_transformers.json",
    "merges.txt",
    "preprocessor_config.json",
    "processor_config.json",
    "sentence_bert_config.json",
    "special_tokens_map.json",
    "vocab.json",
    "vocab.txt",
)
"""Belong to a tokenizer or to what comes before the model; no file of them is read here."""
