"""The cases that a device refuses or takes, which the commands are tested with too."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest")
load("//executorch:defs.bzl", "executorch_device", "executorch_export", "executorch_lower", "hf_model")
load(":helpers.bzl", "empty_files", "refusal_test")
load(":refusal_cases.bzl", "DEVICE_CASES", "LOWER_CASES")

def _accepted_test_impl(ctx):
    # The analysis of the target went through.
    return analysistest.end(analysistest.begin(ctx))

_accepted_test = analysistest.make(_accepted_test_impl)

def _lower_case(name, case):
    device, export = name + "_device", name + "_export"
    executorch_device(
        name = device,
        backend = case["backend"],
        options = case.get("options", {}),
        # Those of a backend would be installed to be refused.
        packages = ":packages",
        tags = ["manual"],
    )
    attributes = {"max_cache_len": 64} if case["task"] == "text-generation" else {}
    executorch_export(
        name = export,
        model = ":case_" + case["task"],
        tags = ["manual"],
        **(attributes | case.get("export", {}))
    )
    attributes = {"device": ":" + device, "exported": ":" + export} | case.get("lower", {})
    if "calibration" in attributes:
        attributes["calibration"] = ":case_samples"
    if case["words"]:
        refusal_test(name = name, rule = executorch_lower, words = case["words"], **attributes)
        return
    executorch_lower(name = name + "_subject", tags = ["manual"], **attributes)
    _accepted_test(name = name, target_under_test = ":" + name + "_subject")

def refusal_test_suite(name):
    """Declares a test for each case.

    Args:
        name: name of the test suite.
    """
    empty_files(
        name = "case_samples",
        names = ["cases/samples.safetensors"],
        tags = ["manual"],
    )
    empty_files(
        name = "case_files",
        names = ["cases/config.json", "cases/model.safetensors"],
        tags = ["manual"],
    )
    for task in {case["task"]: None for case in LOWER_CASES.values()}:
        hf_model(
            name = "case_" + task,
            srcs = [":case_files"],
            tags = ["manual"],
            task = task,
        )
    for case, values in LOWER_CASES.items():
        _lower_case("case_{}_test".format(case), values)
    for case, values in DEVICE_CASES.items():
        refusal_test(
            name = "case_{}_test".format(case),
            rule = executorch_device,
            packages = ":packages",
            **values
        )
    native.test_suite(
        name = name,
        tests = ["case_{}_test".format(case) for case in LOWER_CASES.keys() + DEVICE_CASES.keys()],
    )
