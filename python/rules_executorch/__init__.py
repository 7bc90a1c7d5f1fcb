"""Hugging Face checkpoints to ExecuTorch programs: the actions behind the Bazel rules."""
