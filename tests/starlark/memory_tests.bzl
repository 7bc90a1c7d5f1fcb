"""Tests of what actions tell the scheduler about their memory."""

load("@bazel_skylib//lib:partial.bzl", "partial")
load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load("//executorch/private/actions:memory.bzl", "RESOURCE_SETS", "memory_of_weights")

_GIB = 1 << 30

def _of_weights_test_impl(ctx):
    env = unittest.begin(ctx)
    for weight_bytes, format, dtype, quantized, memory in [
        # Not known.
        (0, "safetensors", "float32", False, "4g"),
        # The base alone, and a little more than it.
        (1, "safetensors", "float16", False, "2g"),
        # SmolLM2-135M: 4 and 16 bits, lowered in float32 and quantized.
        (92 * 1000 * 1000, "gguf", "float32", False, "4g"),
        (92 * 1000 * 1000, "gguf", "float32", True, "2g"),
        (270 * 1000 * 1000, "safetensors", "float32", False, "4g"),
        # 8B in bfloat16, as it is and in float32.
        (16 * _GIB, "safetensors", "bfloat16", False, "64g"),
        (16 * _GIB, "safetensors", "auto", False, "64g"),
        (16 * _GIB, "safetensors", "float32", False, "128g"),
        # More than the largest.
        (1000 * _GIB, "safetensors", "float32", False, "256g"),
    ]:
        asserts.equals(env, memory, memory_of_weights(weight_bytes, format, dtype, quantized))
    return unittest.end(env)

_of_weights_test = unittest.make(_of_weights_test_impl)

def _resource_sets_test_impl(ctx):
    env = unittest.begin(ctx)
    megabytes = [resources("linux", 3)["memory"] for resources in RESOURCE_SETS.values()]
    asserts.equals(env, [1024 * int(name[:-1]) for name in RESOURCE_SETS], megabytes)
    asserts.equals(env, sorted(megabytes), megabytes)
    return unittest.end(env)

_resource_sets_test = unittest.make(_resource_sets_test_impl)

def memory_test_suite(name):
    """Declares the tests of memory.bzl.

    Args:
        name: name of the test suite.
    """
    unittest.suite(
        name,
        partial.make(_of_weights_test, size = "small"),
        partial.make(_resource_sets_test, size = "small"),
    )
