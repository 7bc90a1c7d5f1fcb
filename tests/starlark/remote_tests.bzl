"""Tests of the attribute `remote`. What Bazel is told about an action is in tests/remote."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts", "unittest")
load("//executorch:defs.bzl", "executorch_export", "executorch_lower", "executorch_model", "executorch_release")
load("//executorch/private/actions:remote.bzl", "remote_requirements")
load(":helpers.bzl", "refusal_test")

def _requirements_test_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, {}, remote_requirements(ctx, "default"))
    asserts.equals(
        env,
        {"no-remote-cache-upload": "1", "no-remote-exec": "1"},
        remote_requirements(ctx, "no_upload"),
    )
    asserts.equals(env, {"no-remote": "1"}, remote_requirements(ctx, "local"))
    return unittest.end(env)

_requirements_test = unittest.make(_requirements_test_impl)

def _reaches_test_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.expect_failure(env, "remote = \"elsewhere\" is not known.")
    return analysistest.end(env)

_reaches_test = analysistest.make(_reaches_test_impl, expect_failure = True)

def remote_test_suite(name):
    """Declares the tests.

    Args:
        name: name of the test suite.
    """
    device = "//executorch/devices:host_x86_64_xnnpack"
    words = ["remote = \"never\" is not known.", "Write \"default\", \"no_upload\" or \"local\"."]
    _requirements_test(
        name = "remote_requirements_test",
        size = "small",
    )
    refusal_test(
        name = "remote_export_test",
        max_cache_len = 64,
        model = ":hf_safetensors",
        remote = "never",
        rule = executorch_export,
        words = words,
    )
    refusal_test(
        name = "remote_lower_test",
        device = device,
        exported = ":export",
        remote = "never",
        rule = executorch_lower,
        words = words,
    )
    refusal_test(
        name = "remote_release_test",
        programs = [":lower"],
        remote = "never",
        rule = executorch_release,
        words = words,
    )
    executorch_model(
        name = "remote_model",
        devices = [device],
        max_cache_len = 64,
        model = ":hf_safetensors",
        remote = "elsewhere",
        tags = ["manual"],
    )
    for target in ["export", "lowerings"]:
        _reaches_test(
            name = "remote_model_{}_test".format(target),
            size = "small",
            target_under_test = ":remote_model_" + target,
        )

    native.test_suite(
        name = name,
        tests = [
            "remote_export_test",
            "remote_lower_test",
            "remote_model_export_test",
            "remote_model_lowerings_test",
            "remote_release_test",
            "remote_requirements_test",
        ],
    )
