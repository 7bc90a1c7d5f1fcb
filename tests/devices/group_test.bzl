"""Analysis test of a group of programs: it has one for every device of the catalogue, or says why not."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("//executorch/private/rules:catalogue.bzl", "CatalogueInfo")
load("//models:device_group.bzl", "DeviceGroupInfo")

visibility(["//tests/devices"])

def _names(labels):
    return sorted([label.name for label in labels])

def _group_test_impl(ctx):
    env = analysistest.begin(ctx)
    group = analysistest.target_under_test(env)[DeviceGroupInfo]
    catalogue = [device.label for device in ctx.attr._catalogue[CatalogueInfo].devices]
    asserts.equals(env, _names(catalogue), _names(group.devices + group.left_out.keys()))
    for device, why in group.left_out.items():
        asserts.true(env, why != "", "{} is left out for no reason".format(device))

    # What is left out needs what no registry has.
    backends = {device.label: device.backend for device in ctx.attr._catalogue[CatalogueInfo].devices}
    asserts.equals(
        env,
        ["mediatek", "qualcomm", "samsung"],
        sorted({backends[label]: None for label in group.left_out}),
    )
    return analysistest.end(env)

group_test = analysistest.make(
    _group_test_impl,
    attrs = {
        "_catalogue": attr.label(
            default = "//executorch/devices:catalogue",
            providers = [CatalogueInfo],
        ),
    },
)
