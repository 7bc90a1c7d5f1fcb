"""Python toolchains in the terms of rules_python, old and new."""

load("//executorch/private/toolchain:versions.bzl", "PLATFORMS")

visibility("private")

_HEADER = """\
load("{rules_python}", "py_runtime", "py_runtime_pair")
"""

_TOOLCHAIN = """
py_runtime(
    name = "runtime_{platform}",
    files = ["@{repository}//:marker.json"],
    interpreter = "@{repository}//:python_runtime",
    python_version = "PY3",
)

py_runtime_pair(
    name = "runtimes_{platform}",
    py3_runtime = ":runtime_{platform}",
)

toolchain(
    name = "{platform}",
    exec_compatible_with = {constraints},
    target_compatible_with = {constraints},
    toolchain = ":runtimes_{platform}",
    toolchain_type = "{toolchain_type}",
)
"""

# Since 0.30, rules_python also asks for tools that run during a build. Unless there is a toolchain, it downloads a
# Python for them. They use the interpreter of the toolchain above.
_EXEC_TOOLS = """
load("{rule}", "py_exec_tools_toolchain")

py_exec_tools_toolchain(name = "exec_tools_tools")

toolchain(
    name = "exec_tools",
    toolchain = ":exec_tools_tools",
    toolchain_type = "{toolchain_type}",
)
"""

def _toolchains_repository_impl(rctx):
    rules_python = Label("@rules_python//python:defs.bzl")
    text = _HEADER.format(rules_python = rules_python)
    for repository, platform in rctx.attr.environments.items():
        text += _TOOLCHAIN.format(
            constraints = [str(constraint) for constraint in PLATFORMS[platform]],
            platform = platform,
            repository = repository,
            toolchain_type = Label("@rules_python//python:toolchain_type"),
        )
    if rctx.path(rules_python).dirname.get_child("py_exec_tools_toolchain.bzl").exists:
        text += _EXEC_TOOLS.format(
            rule = Label("@rules_python//python:py_exec_tools_toolchain.bzl"),
            toolchain_type = Label("@rules_python//python:exec_tools_toolchain_type"),
        )
    rctx.file("BUILD.bazel", text, executable = False)

toolchains_repository = repository_rule(
    implementation = _toolchains_repository_impl,
    doc = "Toolchains that run Python targets in an environment, which is made when a target first needs it.",
    attrs = {
        "environments": attr.string_dict(mandatory = True, doc = "Name of an environment's repository: platform."),
    },
)
