"""Tests in Python: pytest as a `py_test`."""

load("@rules_python//python:defs.bzl", "py_test")

visibility("//...")

def pytest_test(name, srcs, data = [], deps = [], args = [], size = "small", **kwargs):
    """A test target that runs pytest on files.

    It fails when no test ran or when one was skipped, writes JUnit XML where Bazel wants it, and
    heeds `--test_filter` (as pytest's `-k`), `shard_count` and the test's temporary folder.

    Args:
        name: name of the target.
        srcs: test files `test_*.py`, and the `conftest.py` and helper modules beside them, which
            are imported by their bare names.
        data: files to be found in the runfiles.
        deps: libraries.
        args: further arguments of pytest.
        size: small for less than a minute on a quiet machine, medium for less than five.
        **kwargs: other attributes of `py_test`.
    """
    py_test(
        name = name,
        size = size,
        srcs = ["//tests/pytest:main.py"] + srcs,
        main = "//tests/pytest:main.py",
        data = data,
        args = [
            "$(rootpath {})".format(src)
            for src in srcs
            if src.rpartition("/")[2].rpartition(":")[2].startswith("test_")
        ] + args,
        legacy_create_init = 0,
        deps = deps,
        **kwargs
    )
