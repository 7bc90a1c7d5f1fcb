"""The Python of this repository's own tests and tools."""

load("//executorch/private/toolchain:environment_repository.bzl", "environment_repository")
load("//executorch/private/toolchain:versions.bzl", "DEFAULT_VERSION", "LOCKS")

visibility("private")

def _development_impl(mctx):
    # The platform does not matter until a target needs the repository: on another one it refuses.
    for platform, lock in LOCKS[DEFAULT_VERSION].items():
        environment_repository(
            name = "executorch_development_" + platform,
            locks = [lock, Label("//tools/toolchain:groups/dev_{}_cp311.lock".format(platform))],
            mode = "pinned",
            platform = platform,
        )
    return mctx.extension_metadata(reproducible = True)

development = module_extension(
    implementation = _development_impl,
    doc = "The packages of the actions with those of this repository's tests and tools on top, for py_binary and py_test here.",
)
