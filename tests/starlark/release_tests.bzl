"""Analysis tests of `executorch_release`, of statements about programs and of licences."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("@rules_license//rules:gather_licenses_info.bzl", "gather_licenses_info")
load("@rules_license//rules:providers.bzl", "TransitiveLicensesInfo")
load(
    "//executorch:defs.bzl",
    "executorch_export",
    "executorch_lower",
    "executorch_release",
    "hf_model",
)
load("//executorch:providers.bzl", "ExecutorchProgramInfo", "HfModelInfo")
load(":helpers.bzl", "action_of", "argument_after", "basenames", "empty_files", "refusal_test")

_URL = "pkg:huggingface/example/licensed@0123456789abcdef0123456789abcdef01234567"

def _release_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    action = action_of(env, "ExecutorchRelease")
    asserts.equals(env, ["release.tar"], basenames(target[DefaultInfo].files))
    argv = action.argv
    asserts.equals(
        env,
        ["licensed_program/" + name for name in [
            "manifest.json",
            "model.pte",
            "provenance.json",
            "report.md",
            "sbom.cdx.json",
            "tokenizer.json",
            "licenses/LICENSE.txt",
            "licenses/NOTICE",
        ]],
        [argv[index + 1] for index in range(len(argv)) if argv[index] == "--add"],
    )
    asserts.equals(env, "release", argument_after(action, "--name"))
    return analysistest.end(env)

_release_test = analysistest.make(_release_test_impl)

def _statements_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    program = target[ExecutorchProgramInfo]
    asserts.equals(env, [program.sbom], target[OutputGroupInfo].sbom.to_list())
    asserts.equals(env, [program.provenance], target[OutputGroupInfo].provenance.to_list())

    sbom = action_of(env, "ExecutorchSbom")
    asserts.equals(env, "licensed_program", argument_after(sbom, "--name"))
    asserts.equals(env, "apache-2.0", argument_after(sbom, "--license"))
    asserts.equals(env, _URL, argument_after(sbom, "--package-url"))
    asserts.equals(env, None, argument_after(sbom, "--source"))
    asserts.equals(
        env,
        ["README.md", "licensed_program.manifest.json"],
        basenames(sbom.inputs),
        "neither program nor weights are read",
    )
    provenance = action_of(env, "ExecutorchProvenance")
    asserts.equals(env, "//tests/starlark:licensed_program", argument_after(provenance, "--lowered"))
    asserts.equals(env, "https://example.org/ci", argument_after(provenance, "--builder"))
    asserts.equals(env, ["licensed_program.manifest.json"], basenames(provenance.inputs))
    return analysistest.end(env)

_statements_test = analysistest.make(
    _statements_test_impl,
    config_settings = {str(Label("//executorch/settings:builder_id")): "https://example.org/ci"},
)

def _hub_test_impl(ctx):
    env = analysistest.begin(ctx)
    model = analysistest.target_under_test(env)[HfModelInfo]
    asserts.equals(env, "huggingface.json", model.source.basename)
    describe = action_of(env, "HfModelDescribe")
    asserts.equals(env, None, argument_after(describe, "--license"))
    asserts.false(
        env,
        "huggingface.json" in basenames(describe.inputs),
        "another revision with the same files changes nothing",
    )
    asserts.equals(env, None, argument_after(describe, "--denied-licenses"))
    return analysistest.end(env)

_hub_test = analysistest.make(_hub_test_impl)

def _denied_test_impl(ctx):
    env = analysistest.begin(ctx)
    describe = action_of(env, "HfModelDescribe")
    start = describe.argv.index("--denied-licenses")
    asserts.equals(env, ["cc-by-nc-*", "unknown"], describe.argv[start + 1:start + 3])
    asserts.equals(env, "apache-2.0", argument_after(describe, "--license"))
    return analysistest.end(env)

_denied_test = analysistest.make(
    _denied_test_impl,
    config_settings = {str(Label("//executorch/settings:denied_licenses")): ["cc-by-nc-*", "unknown"]},
)

def _gathered_test_impl(ctx):
    env = analysistest.begin(ctx)
    found = analysistest.target_under_test(env)[TransitiveLicensesInfo].licenses.to_list()
    ours = [info for info in found if info.package_name == "licensed_model"]
    asserts.equals(env, 1, len(ours), "the model's licence is found from its program")
    asserts.equals(env, [ctx.attr.kind], [kind.name for kind in ours[0].license_kinds])
    asserts.equals(env, _URL, ours[0].package_url)
    return analysistest.end(env)

_gathered_test = analysistest.make(
    _gathered_test_impl,
    attrs = {"kind": attr.string()},
    extra_target_under_test_aspects = [gather_licenses_info],
)

def release_test_suite(name):
    """Declares the tests of releases.

    Args:
        name: name of the test suite.
    """
    files = ["LICENSE.txt", "NOTICE", "README.md", "config.json", "model.safetensors", "tokenizer.json"]
    empty_files(
        name = "licensed_files",
        names = ["licensed/" + file for file in files],
        tags = ["manual"],
    )
    hf_model(
        name = "licensed_model",
        srcs = [":licensed_files"],
        license = "apache-2.0",
        package_url = _URL,
        tags = ["manual"],
    )
    executorch_export(
        name = "licensed_export",
        max_cache_len = 32,
        model = ":licensed_model",
        tags = ["manual"],
    )
    executorch_lower(
        name = "licensed_program",
        device = "//executorch/devices:portable",
        exported = ":licensed_export",
        tags = ["manual"],
    )
    executorch_release(
        name = "release",
        programs = [":licensed_program"],
        tags = ["manual"],
    )
    empty_files(
        name = "from_hub_files",
        names = ["from_hub/" + file for file in files + ["huggingface.json"]],
        tags = ["manual"],
    )
    hf_model(
        name = "from_hub",
        srcs = [":from_hub_files"],
        tags = ["manual"],
    )

    _release_test(
        name = "release_test",
        size = "small",
        target_under_test = ":release.shared",
    )
    _statements_test(
        name = "release_statements_test",
        size = "small",
        target_under_test = ":licensed_program.shared",
    )
    _hub_test(
        name = "release_from_hub_test",
        size = "small",
        target_under_test = ":from_hub.shared",
    )
    _denied_test(
        name = "release_denied_test",
        size = "small",
        target_under_test = ":licensed_model.shared",
    )
    _gathered_test(
        name = "release_gathered_test",
        size = "small",
        kind = "Apache-2.0",
        target_under_test = ":licensed_program",
    )
    refusal_test(
        name = "release_empty_test",
        rule = executorch_release,
        programs = [],
        words = ["programs is empty."],
    )
    native.alias(
        name = "licensed_again",
        actual = ":licensed_program",
        tags = ["manual"],
    )
    refusal_test(
        name = "release_same_folder_test",
        rule = executorch_release,
        programs = [":licensed_again", ":licensed_program"],
        words = ["would be one folder of the archive, licensed_program."],
    )

    native.test_suite(
        name = name,
        tests = [
            "release_denied_test",
            "release_empty_test",
            "release_from_hub_test",
            "release_gathered_test",
            "release_same_folder_test",
            "release_statements_test",
            "release_test",
        ],
    )
