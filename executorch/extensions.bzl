"""The module extensions; see each one's documentation."""

load("//executorch/private/huggingface:extension.bzl", _huggingface = "huggingface")
load("//executorch/private/toolchain:extension.bzl", _executorch = "executorch")

executorch = _executorch
huggingface = _huggingface
