"""Tests of what `include` and `exclude` select."""

load("@bazel_skylib//lib:partial.bzl", "partial")
load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load("//executorch/private/huggingface:patterns.bzl", "matches", "pattern_error", "selected")  # buildifier: disable=bzl-visibility
load(":pattern_cases.bzl", "PATTERN_CASES")

visibility("private")

def _matches_test_impl(ctx):
    env = unittest.begin(ctx)
    asserts.true(env, len(PATTERN_CASES) > 20)
    for pattern, path, expected in PATTERN_CASES:
        asserts.equals(env, expected, matches(pattern, path), "{} on {}".format(repr(pattern), repr(path)))
    return unittest.end(env)

_matches_test = unittest.make(_matches_test_impl)

def _selected_test_impl(ctx):
    env = unittest.begin(ctx)
    paths = ["README.md", "config.json", "model.safetensors", "onnx/config.json"]
    asserts.equals(env, paths, selected(paths, [], []))
    asserts.equals(env, ["config.json", "onnx/config.json"], selected(paths, ["*.json"], []))
    asserts.equals(env, ["config.json", "model.safetensors"], selected(paths, ["*.json", "*.safetensors"], ["onnx/"]))
    asserts.equals(env, [], selected(paths, ["*.gguf"], []))
    return unittest.end(env)

_selected_test = unittest.make(_selected_test_impl)

def _pattern_error_test_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, None, pattern_error(["*.json", "a?", "onnx/"]))
    asserts.true(env, "brackets" in pattern_error(["*.json", "[ab]"]))
    asserts.true(env, "empty" in pattern_error([""]))
    return unittest.end(env)

_pattern_error_test = unittest.make(_pattern_error_test_impl)

def pattern_test_suite(name):
    """The tests of this file.

    Args:
        name: name of the suite.
    """
    unittest.suite(
        name,
        partial.make(_matches_test, size = "small"),
        partial.make(_selected_test, size = "small"),
        partial.make(_pattern_error_test, size = "small"),
    )
