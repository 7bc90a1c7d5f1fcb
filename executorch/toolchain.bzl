"""The toolchain of the actions: its rule, its provider, and how rules ask for it.

A rule that runs an action of its own with this Python has
`toolchains = [EXECUTORCH_TOOLCHAIN_TYPE]` and reads `ctx.toolchains[EXECUTORCH_TOOLCHAIN_TYPE]`,
which has the fields of `ExecutorchToolchainInfo`.
"""

load("//executorch/private/providers:executorch_toolchain_info.bzl", _ExecutorchToolchainInfo = "ExecutorchToolchainInfo")
load("//executorch/private/toolchain:executorch_toolchain.bzl", _executorch_toolchain = "executorch_toolchain")

EXECUTORCH_TOOLCHAIN_TYPE = Label("//executorch:toolchain_type")
ExecutorchToolchainInfo = _ExecutorchToolchainInfo
executorch_toolchain = _executorch_toolchain
