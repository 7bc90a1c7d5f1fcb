"""Providers of the rules, for rules of your own that consume or produce models and programs."""

load("//executorch/private/providers:executorch_assets_info.bzl", _ExecutorchAssetsInfo = "ExecutorchAssetsInfo")
load("//executorch/private/providers:executorch_device_info.bzl", _ExecutorchDeviceInfo = "ExecutorchDeviceInfo")
load("//executorch/private/providers:executorch_program_info.bzl", _ExecutorchProgramInfo = "ExecutorchProgramInfo")
load("//executorch/private/providers:exported_program_info.bzl", _ExportedProgramInfo = "ExportedProgramInfo")
load("//executorch/private/providers:hf_model_info.bzl", _HfModelInfo = "HfModelInfo")

ExecutorchAssetsInfo = _ExecutorchAssetsInfo
ExecutorchDeviceInfo = _ExecutorchDeviceInfo
ExecutorchProgramInfo = _ExecutorchProgramInfo
ExportedProgramInfo = _ExportedProgramInfo
HfModelInfo = _HfModelInfo
