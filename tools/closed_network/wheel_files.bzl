"""Files out of a wheel on a package index, by hash."""

visibility("private")

# The installer's modules; watched, so that a change of them fetches again.
_MODULES = [
    Label("//tools/toolchain:" + name)
    for name in [
        "errors.py",
        "fetch_wheel.py",
        "interpreter.py",
        "lockfile.py",
        "store.py",
        "wheels.py",
    ]
]

_MAIN = Label("//tools/toolchain:fetch_wheel.py")

# The repositories see this module by its canonical name only.
_SIZED_FILES = str(Label("//executorch/private/rules:sized_files.bzl"))

_SIZES = "import json, os; print(json.dumps({f.name: str(f.stat().st_size) for f in os.scandir() if f.is_file()}))"

def _python(rctx):
    configured = rctx.getenv("RULES_EXECUTORCH_PYTHON")
    if configured:
        return configured
    for name in ["python3.11", "python3"]:
        found = rctx.which(name)
        if found:
            return found
    fail("\n\nERROR: {} comes from a package index, and no Python is on PATH to fetch it. ".format(rctx.attr.requirement) +
         "Install Python 3.11, or set RULES_EXECUTORCH_PYTHON to the path of one.\n")

def _wheel_files_impl(rctx):
    for module in _MODULES:
        rctx.watch(module)

    # getenv, so that another folder leads to another fetch.
    rctx.getenv("RULES_EXECUTORCH_CACHE")
    command = [
        _python(rctx),
        "-E",
        "-s",
        "-B",
        "-u",
        rctx.path(_MAIN),
        "--requirement",
        rctx.attr.requirement,
        "--sha256",
        rctx.attr.sha256,
        "--out",
        ".",
    ]
    for pattern in rctx.attr.files:
        command += ["--file", pattern]
    rctx.report_progress("Fetching " + rctx.attr.requirement)
    result = rctx.execute(command, timeout = 3600, quiet = False)
    if result.return_code:
        _, found, message = result.stderr.rpartition("ERROR: ")
        fail("\n\nERROR: {} was not fetched. {}\n".format(
            rctx.attr.requirement,
            (message if found else result.stderr).strip(),
        ))
    sizes = rctx.execute([_python(rctx), "-E", "-s", "-B", "-c", _SIZES])
    if sizes.return_code:
        fail("\n\nERROR: the files of {} cannot be listed. {}\n".format(rctx.attr.requirement, sizes.stderr.strip()))
    rctx.file("BUILD.bazel", """\
load("{module}", "executorch_sized_files")

package(default_visibility = ["//visibility:public"])

executorch_sized_files(
    name = "files",
    bytes = {bytes},
    srcs = glob(
        ["**"],
        exclude = [
            "BUILD.bazel",
            "REPO.bazel",
            "WORKSPACE",
        ],
    ),
)
""".format(bytes = sizes.stdout.strip(), module = _SIZED_FILES), executable = False)

wheel_files = repository_rule(
    implementation = _wheel_files_impl,
    doc = "Fetches a wheel with pip, as pip is configured on the machine, and exposes some of its files as `:files`.",
    attrs = {
        "requirement": attr.string(mandatory = True, doc = "`name==version`."),
        "sha256": attr.string(mandatory = True, doc = "sha256 of the wheel."),
        "files": attr.string_list(
            mandatory = True,
            doc = "Globs over paths in the wheel. Each matches one file, which is exposed under its base name.",
        ),
    },
)
