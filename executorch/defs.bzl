"""All rules of rules_executorch; each is documented in the file it is loaded from here."""

load("//executorch:assets.bzl", _executorch_assets = "executorch_assets")
load("//executorch:benchmark.bzl", _executorch_benchmark = "executorch_benchmark")
load("//executorch:budget_test.bzl", _executorch_budget_test = "executorch_budget_test")
load("//executorch:cc_embed.bzl", _executorch_cc_embed = "executorch_cc_embed")
load("//executorch:device.bzl", _executorch_device = "executorch_device")
load("//executorch:export.bzl", _executorch_export = "executorch_export")
load("//executorch:generate.bzl", _executorch_generate = "executorch_generate")
load("//executorch:hf_model.bzl", _hf_model = "hf_model")
load("//executorch:lower.bzl", _executorch_lower = "executorch_lower")
load("//executorch:model.bzl", _executorch_model = "executorch_model")
load("//executorch:operators.bzl", _executorch_operators = "executorch_operators")
load("//executorch:parity_test.bzl", _executorch_parity_test = "executorch_parity_test")
load("//executorch:release.bzl", _executorch_release = "executorch_release")
load("//executorch:tiny_checkpoint.bzl", _tiny_checkpoint = "tiny_checkpoint")

executorch_assets = _executorch_assets
executorch_benchmark = _executorch_benchmark
executorch_budget_test = _executorch_budget_test
executorch_cc_embed = _executorch_cc_embed
executorch_device = _executorch_device
executorch_export = _executorch_export
executorch_generate = _executorch_generate
executorch_lower = _executorch_lower
executorch_model = _executorch_model
executorch_operators = _executorch_operators
executorch_parity_test = _executorch_parity_test
executorch_release = _executorch_release
hf_model = _hf_model
tiny_checkpoint = _tiny_checkpoint
