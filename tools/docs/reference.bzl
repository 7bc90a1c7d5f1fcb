"""Reference documentation out of the public Starlark, and the test that it is up to date."""

load("@rules_python//python:defs.bzl", "py_binary", "py_test")

visibility("//docs/...")

def reference(name, out, files):
    """Declares NAME, which writes the page into the checkout, and NAME_test, which compares.

    Args:
        name: name of the target to run.
        out: the page, beside the BUILD file.
        files: public files of //executorch, without `.bzl`, in the order of the page.
    """
    for file in files:
        native.starlark_doc_extract(
            name = "{}_{}".format(name, file),
            src = "//executorch:{}.bzl".format(file),
            # The library that others load it by, which thereby is known to be whole.
            deps = ["//executorch:" + file],
        )
    extracted = [":{}_{}.textproto".format(name, file) for file in files]
    arguments = ["$(rootpath {})".format(label) for label in extracted]
    for rule, target, mode in ((py_binary, name, "write"), (py_test, name + "_test", "check")):
        rule(
            name = target,
            srcs = ["//tools/docs:reference.py"],
            args = [mode, "$(rootpath {})".format(out)] + arguments,
            data = extracted + [out],
            main = "//tools/docs:reference.py",
        )
