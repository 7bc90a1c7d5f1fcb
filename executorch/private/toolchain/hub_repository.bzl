"""The repository of `toolchain()` targets, which names environments without making them."""

load(":versions.bzl", "PLATFORMS")

visibility("//executorch/private/toolchain")

_TOOLCHAIN = """
toolchain(
    name = "{platform}_{mode}",
    exec_compatible_with = {constraints},
    target_settings = ["{setting}"],
    toolchain = "@{repository}//:toolchain",
    toolchain_type = "{toolchain_type}",
)
"""

def _hub_repository_impl(rctx):
    rctx.file("BUILD.bazel", "".join([
        _TOOLCHAIN.format(
            constraints = [str(constraint) for constraint in PLATFORMS[platform]],
            mode = mode,
            platform = platform,
            repository = repository,
            setting = Label("//executorch/settings:toolchain_mode_" + mode),
            toolchain_type = Label("//executorch:toolchain_type"),
        )
        for repository, (platform, mode) in [
            (repository, key.split(":"))
            for repository, key in sorted(rctx.attr.environments.items())
        ]
    ]), executable = False)

hub_repository = repository_rule(
    implementation = _hub_repository_impl,
    doc = "Toolchains of all platforms and modes.",
    attrs = {
        "environments": attr.string_dict(
            mandatory = True,
            doc = "Name of an environment's repository: PLATFORM:MODE.",
        ),
    },
)
