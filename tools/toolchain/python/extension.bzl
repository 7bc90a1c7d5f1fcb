"""The Python of this repository's own tests and tools."""

load("//executorch/private/toolchain:environment_repository.bzl", "environment_repository")
load("//executorch/private/toolchain:versions.bzl", "DEFAULT_VERSION", "LOCKS")
load(":toolchains_repository.bzl", "toolchains_repository")

visibility("private")

def _development_impl(mctx):
    platforms = {}
    for platform, lock in LOCKS[DEFAULT_VERSION].items():
        repository = "executorch_development_" + platform
        platforms[repository] = platform
        environment_repository(
            name = repository,
            locks = [lock, Label("//tools/toolchain:groups/dev_{}_cp311.lock".format(platform))],
            mode = "pinned",
            platform = platform,
        )
    toolchains_repository(name = "executorch_development", environments = platforms)
    return mctx.extension_metadata(reproducible = True)

development = module_extension(
    implementation = _development_impl,
    doc = "Python toolchains for py_binary and py_test here: the packages of the actions with those of tests and tools on top.",
)
