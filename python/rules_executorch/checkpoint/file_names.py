"""Names of files of a checkpoint, for the rules as well: nothing here loads torch.

`bazel run //tools/tables:update` writes what the rules know of them in Starlark.
"""

PICKLES = (".bin", ".ckpt", ".joblib", ".pickle", ".pkl", ".pt", ".pth")
"""What torch.save and its kin write. Loading one runs whatever program is inside."""

SENTENCEPIECE = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model")
"""Tokenizers of sentencepiece."""

TOKENIZERS = ("tokenizer.json", "tekken.json", *SENTENCEPIECE)
"""Tokenizers in the order of preference: the first that is there is read."""
