"""The rule `executorch_toolchain`; users load it from //executorch:toolchain.bzl."""

load("//executorch/private/providers:executorch_toolchain_info.bzl", "ExecutorchToolchainInfo")

visibility("//executorch")

DOC = """The Python of the actions, as a target that `toolchain()` can name.

The ruleset registers one with the versions of its lock. An app that wants others writes its own:

```starlark
executorch_toolchain(
    name = "our_python",
    launcher = "python.sh",          # runs a Python 3.11 with the packages: exec PYTHON -s -P "$@"
    marker = "versions.json",        # changes whenever the packages do
    versions = {"executorch": "1.4.0", "torch": "2.12.0+cpu"},
)

toolchain(
    name = "our_toolchain",
    toolchain = ":our_python",
    toolchain_type = "@rules_executorch//executorch:toolchain_type",
)
```

and `register_toolchains("//:our_toolchain")` in its MODULE.bazel, which takes precedence over the ruleset's.
"""

ATTRS = {
    "launcher": attr.label(
        mandatory = True,
        allow_single_file = True,
        doc = "An executable file that runs the Python with the arguments it gets. It must not let the user's own " +
              "packages in (PYTHONPATH, user site-packages, the working directory), and must heed PYTHONHASHSEED.",
    ),
    "marker": attr.label(
        mandatory = True,
        allow_single_file = True,
        doc = "A file whose contents change whenever the packages change.",
    ),
    "files": attr.label_list(
        allow_files = True,
        doc = "The interpreter and its packages, where they are files that Bazel knows. Without them the launcher " +
              "finds its packages on the machine, and actions stay on this machine.",
    ),
    "versions": attr.string_dict(
        doc = "Versions of the main packages, by name.",
    ),
}

def _executorch_toolchain_impl(ctx):
    packages = [target[DefaultInfo].files for target in ctx.attr.files]
    fields = {
        "execution_requirements": {} if ctx.attr.files else {"no-remote-exec": "1"},
        "files": depset([ctx.file.launcher, ctx.file.marker], transitive = packages),
        "launcher": ctx.file.launcher,
        "marker": ctx.file.marker,
        "versions": ctx.attr.versions,
    }
    return [
        DefaultInfo(files = fields["files"]),
        ExecutorchToolchainInfo(**fields),
        platform_common.ToolchainInfo(**fields),
    ]

executorch_toolchain = rule(
    implementation = _executorch_toolchain_impl,
    doc = DOC,
    attrs = ATTRS,
    provides = [ExecutorchToolchainInfo, platform_common.ToolchainInfo],
)
