"""Hugging Face checkpoints to ExecuTorch programs: the actions behind the Bazel rules."""

# That of MODULE.bazel.
__version__ = "0.1.0"
