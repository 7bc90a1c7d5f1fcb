"""Tests that run Bazel in Bazel."""

load("//tests/pytest:pytest_test.bzl", "pytest_test")

visibility("//tests/...")

def nested_test(**kwargs):
    """A `pytest_test` outside of the sandbox, on the checkout that it is in, every time.

    Its servers have output bases of their own, so that it runs beside other tests.

    Args:
        **kwargs: its attributes.
    """
    pytest_test(
        size = "medium",
        env_inherit = [
            "BAZELW_BAZEL",
            "HOME",
            "PATH",
            "RULES_EXECUTORCH_CACHE",
            "RULES_EXECUTORCH_PYTHON",
            "XDG_CACHE_HOME",
        ],
        tags = [
            "external",
            "local",
            "nested",
            "requires-network",
        ],
        **kwargs
    )
