"""A binary out of an npm package, fetched by hash through the machine's own npm client."""

visibility("private")

_STUB = """#!/usr/bin/env bash
echo "{tool} is not available: {reason}" >&2
exit 1
"""

def _stub(rctx, reason):
    # The repository must exist without npm as well, so that `bazel test //...` fails in the one
    # test that needs the tool, and says why, and every other target still builds.
    rctx.file(rctx.attr.tool, _STUB.format(tool = rctx.attr.tool, reason = reason), executable = True)

def _platform(rctx):
    arch = {"aarch64": "arm64", "amd64": "amd64", "arm64": "arm64", "x86_64": "amd64"}.get(rctx.os.arch)
    os = "darwin" if rctx.os.name.startswith("mac") else "linux"
    return "{}_{}".format(os, arch)

def _npm_tool_impl(rctx):
    rctx.file("BUILD.bazel", "exports_files([{}])\n".format(repr(rctx.attr.tool)))
    npm = rctx.which("npm")
    if not npm:
        _stub(rctx, "install npm, which fetches {}.".format(rctx.attr.package))
        return
    rctx.report_progress("Fetching {} {}".format(rctx.attr.package, rctx.attr.version))
    spec = "{}@{}".format(rctx.attr.package, rctx.attr.version)
    packed = rctx.execute([npm, "pack", spec, "--silent", "--pack-destination", "."], timeout = 300)
    if packed.return_code:
        _stub(rctx, "npm could not fetch {}.".format(spec))
        return
    archive = packed.stdout.strip().split("\n")[-1]
    digest = rctx.execute(["sha256sum", archive]) if rctx.which("sha256sum") else rctx.execute(["shasum", "-a", "256", archive])
    found = digest.stdout.split(" ")[0]
    if found != rctx.attr.sha256:
        fail("{} has the sha256 {}, but {} is pinned. The registry served another file.".format(spec, found, rctx.attr.sha256))
    rctx.extract(archive, "unpacked")
    rctx.delete(archive)
    rctx.symlink("unpacked/package/{}-{}".format(rctx.attr.tool, _platform(rctx)), rctx.attr.tool)

npm_tool = repository_rule(
    implementation = _npm_tool_impl,
    doc = "Exposes one prebuilt binary of an npm package as a file named after the tool.",
    attrs = {
        "package": attr.string(mandatory = True, doc = "Name of the npm package."),
        "sha256": attr.string(mandatory = True, doc = "Hash of the package's archive."),
        "tool": attr.string(mandatory = True, doc = "Name of the binary, without its platform suffix."),
        "version": attr.string(mandatory = True, doc = "Exact version of the npm package."),
    },
)
