"""Tests that run Bazel in Bazel."""

load("//tests/pytest:pytest_test.bzl", "pytest_test")

visibility("//tests/...")

def nested_test(**kwargs):
    """A `pytest_test` outside of the sandbox, one at a time, on the checkout that it is in.

    Args:
        **kwargs: its attributes.
    """
    pytest_test(
        size = "large",
        timeout = "eternal",
        env_inherit = [
            "BAZELW_BAZEL",
            "HOME",
            "PATH",
            "RULES_EXECUTORCH_CACHE",
            "RULES_EXECUTORCH_PYTHON",
            "XDG_CACHE_HOME",
        ],
        tags = [
            "exclusive",
            "local",
            "requires-network",
        ],
        **kwargs
    )
