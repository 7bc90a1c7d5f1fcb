"""The repository that makes a Python environment and has an `executorch_toolchain` for it."""

visibility("//tools/toolchain/python")

_BUILD = """\
load("{toolchain_bzl}", "executorch_toolchain")

package(default_visibility = ["//visibility:public"])

exports_files(["launcher", "marker.json", "python_runtime"])

executorch_toolchain(
    name = "toolchain",
    files = {files},
    launcher = "launcher",
    marker = "marker.json",
    versions = {versions},
)
"""

_INSTALLER = [
    Label("//tools/toolchain:" + name)
    for name in [
        "bytecode.py",
        "errors.py",
        "install.py",
        "interpreter.py",
        "lockfile.py",
        "marker.py",
        "store.py",
        "tree.py",
        "wheels.py",
    ]
]

_MAIN = Label("//tools/toolchain:install.py")

_HOW_TO_CHOOSE = "Install Python 3.11, or set RULES_EXECUTORCH_PYTHON to the path of one (--repo_env=RULES_EXECUTORCH_PYTHON=... or " + \
                 "the environment), or name one in MODULE.bazel: executorch.toolchain(python = \"@...\")."

def _host_platform(rctx):
    os = "macos" if rctx.os.name.startswith("mac") else rctx.os.name
    arch = {"amd64": "x86_64", "arm64": "aarch64"}.get(rctx.os.arch, rctx.os.arch)
    return "{}_{}".format(os, arch)

def _is_wanted_python(rctx, path):
    # Run it: a shim of a version manager exists whether or not the version does.
    probe = rctx.execute([path, "-I", "-c", "import sys; sys.exit(sys.version_info[:2] != (3, 11))"])
    return probe.return_code == 0

def _find_python(rctx):
    configured = rctx.getenv("RULES_EXECUTORCH_PYTHON")
    if configured:
        if not configured.startswith("/") or not _is_wanted_python(rctx, configured):
            fail("\n\nERROR: RULES_EXECUTORCH_PYTHON is {}, which is not the absolute path of a Python 3.11. {}\n".format(repr(configured), _HOW_TO_CHOOSE))
        return configured
    if rctx.attr.python:
        python = rctx.path(rctx.attr.python)
        if not _is_wanted_python(rctx, python):
            fail("\n\nERROR: {}, which MODULE.bazel names for executorch.toolchain, is not a Python 3.11. {}\n".format(rctx.attr.python, _HOW_TO_CHOOSE))
        return python
    for name in ["python3.11", "python3", "python"]:
        found = rctx.which(name)
        if found and _is_wanted_python(rctx, found):
            return found
    fail("\n\nERROR: No Python 3.11 is on PATH, and the packages that compile models are locked for it. {}\n".format(_HOW_TO_CHOOSE))

def _runtime(rctx, environment):
    """The C++ runtime that is in the wheel of executorch, as a package of its own."""
    executorch = environment.get_child("lib", "python3.11", "site-packages", "executorch")
    if not executorch.get_child("include").exists:
        # A layer above the packages of the base, which have it.
        return
    for name in ["include", "lib"]:
        rctx.symlink(executorch.get_child(name), "runtime/" + name)
    rctx.file("runtime/BUILD.bazel", rctx.read(Label("//executorch/private/toolchain:runtime.BUILD.bazel")), executable = False)

def _error_line(output):
    # The installer's last message, which may have more than one line.
    _, found, message = output.rpartition("ERROR: ")
    return message.strip() if found else output.strip()

def _install(rctx, python):
    for label in _INSTALLER:
        rctx.watch(label)
    command = [python, "-E", "-s", "-B", "-u", rctx.path(_MAIN), "--result", "result.json"]
    for lock in rctx.attr.locks:
        rctx.watch(lock)
        command += ["--lock", rctx.path(lock)]
    if rctx.attr.mode == "declared":
        command += ["--tree", "environment"]
    rctx.report_progress("Installing the Python packages that compile models (once per machine and lock)")

    # getenv, so that another folder means another installation.
    rctx.getenv("RULES_EXECUTORCH_CACHE")
    result = rctx.execute(command, timeout = 3600, quiet = False)
    if result.return_code:
        fail("\n\nERROR: The Python environment was not made. {}\n".format(_error_line(result.stderr)))
    return json.decode(rctx.read("result.json", watch = "no"))

def _environment_repository_impl(rctx):
    if _host_platform(rctx) != rctx.attr.platform:
        fail("\n\nERROR: This Python environment is for {}, and can only be made there; this machine is {}. {}\n".format(
            rctx.attr.platform,
            _host_platform(rctx),
            "Register an executorch_toolchain of your own for actions on another kind of machine.",
        ))
    environment = rctx.path(_install(rctx, _find_python(rctx))["environment"])
    rctx.delete("result.json")

    # Read and watched, so that this repository is made again when the folder in the cache is removed.
    rctx.file("marker.json", rctx.read(environment.get_child("marker.json"), watch = "yes"), executable = False)
    if rctx.attr.mode == "pinned":
        rctx.symlink(environment, "environment")
    _runtime(rctx, environment)
    for name in ["launcher", "python_runtime"]:
        rctx.file(name, rctx.read(Label("//executorch/private/toolchain:{}.sh".format(name))), executable = True)
    rctx.file("BUILD.bazel", _BUILD.format(
        files = "glob([\"environment/**\"])" if rctx.attr.mode == "declared" else "[]",
        toolchain_bzl = Label("//executorch:toolchain.bzl"),
        versions = json.encode(rctx.attr.versions),
    ), executable = False)

environment_repository = repository_rule(
    implementation = _environment_repository_impl,
    doc = "Installs the locked packages into the machine's cache and exposes them as a toolchain.",
    attrs = {
        "locks": attr.label_list(mandatory = True, doc = "Layers, from the base to the top."),
        "mode": attr.string(mandatory = True, values = ["pinned", "declared"]),
        "platform": attr.string(mandatory = True, doc = "OS_CPU that the locks are for."),
        "python": attr.label(doc = "A Python 3.11; by default one from PATH."),
        "versions": attr.string_dict(doc = "Passed on to the toolchain."),
    },
)
