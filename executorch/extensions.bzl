"""Module extensions: the toolchain, and models of the Hugging Face Hub."""

load("//executorch/private/huggingface:extension.bzl", _huggingface = "huggingface")
load("//executorch/private/toolchain:extension.bzl", _executorch = "executorch")

executorch = _executorch
huggingface = _huggingface
