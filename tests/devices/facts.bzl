"""What the rules know of devices and of tests, as JSON, for what the docs say of them."""

load("//executorch:providers.bzl", "ExecutorchProgramInfo")
load("//executorch/private/rules:catalogue.bzl", "CatalogueInfo")
load("//models:device_group.bzl", "DeviceGroupInfo")

visibility(["//tests/devices"])

ExecutionInfo = provider(
    "A test that executes a program.",
    fields = {"backend": "string: of the program."},
)

def _executes_impl(_target, ctx):
    if ctx.rule.kind != "executorch_parity_test":
        fail("{} is a {}, and an executorch_parity_test shows that a program runs.".format(ctx.label, ctx.rule.kind))
    return [ExecutionInfo(backend = ctx.rule.attr.program[ExecutorchProgramInfo].device.backend)]

_executes = aspect(implementation = _executes_impl)

def _text(label):
    return "//{}:{}".format(label.package, label.name)

def _facts_impl(ctx):
    facts = {
        "devices": {
            device.label.name: device.backend
            for device in ctx.attr.catalogue[CatalogueInfo].devices
        },
        "executed": {
            _text(target.label): target[ExecutionInfo].backend
            for target in ctx.attr.tests
        },
        "lowered": [label.name for label in ctx.attr.group[DeviceGroupInfo].devices],
    }
    file = ctx.actions.declare_file(ctx.label.name + ".json")
    ctx.actions.write(file, json.encode_indent(facts, indent = "  ") + "\n")
    return [DefaultInfo(files = depset([file]), runfiles = ctx.runfiles([file]))]

facts = rule(
    implementation = _facts_impl,
    attrs = {
        "catalogue": attr.label(mandatory = True, providers = [CatalogueInfo]),
        "group": attr.label(mandatory = True, providers = [DeviceGroupInfo]),
        "tests": attr.label_list(
            aspects = [_executes],
            doc = "Each an `executorch_parity_test`.",
        ),
    },
    doc = "Facts about devices and tests.",
)
