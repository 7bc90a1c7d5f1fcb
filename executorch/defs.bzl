"""All rules of rules_executorch; each is documented in the file it is loaded from here."""

load("//executorch:device.bzl", _executorch_device = "executorch_device")
load("//executorch:export.bzl", _executorch_export = "executorch_export")
load("//executorch:generate.bzl", _executorch_generate = "executorch_generate")
load("//executorch:hf_model.bzl", _hf_model = "hf_model")
load("//executorch:lower.bzl", _executorch_lower = "executorch_lower")
load("//executorch:parity_test.bzl", _executorch_parity_test = "executorch_parity_test")
load("//executorch:tiny_checkpoint.bzl", _tiny_checkpoint = "tiny_checkpoint")

executorch_device = _executorch_device
executorch_export = _executorch_export
executorch_generate = _executorch_generate
executorch_lower = _executorch_lower
executorch_parity_test = _executorch_parity_test
hf_model = _hf_model
tiny_checkpoint = _tiny_checkpoint
