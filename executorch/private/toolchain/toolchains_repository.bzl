"""The repository with a toolchain for each environment; it names them without making them."""

load(":versions.bzl", "PLATFORMS")

visibility("//executorch/private/toolchain")

_HEADER = """\
package(default_visibility = ["//visibility:public"])
"""

_SETTING = """
config_setting(
    name = "is_{platform}_{mode}",
    constraint_values = {constraints},
    flag_values = {{"{flag}": "{mode}"}},
)
"""

_TOOLCHAIN = """
toolchain(
    name = "{platform}_{mode}",
    exec_compatible_with = {constraints},
    target_settings = ["{setting}"],
    toolchain = "@{repository}//:toolchain",
    toolchain_type = "{toolchain_type}",
)
"""

_GROUP = """
alias(
    name = "{group}",
    actual = select(
        {choices},
        no_match_error = "The packages of the group {group} are locked for {platforms}, and the platform that would run the action is another.",
    ),
)
"""

_RUNTIME = """
alias(
    name = "{name}",
    actual = select(
        {choices},
        no_match_error = "The C++ runtime comes with the packages for {platforms}, and the app is for another platform. Link one that is built for it.",
    ),
)
"""

_RUNTIME_TARGETS = {
    "runtime": "runtime",
    "runtime_backend_openvino": "backend_openvino",
    "runtime_etdump": "etdump",
    "runtime_headers": "headers",
    "runtime_kernels_quantized": "kernels_quantized",
}

def _constraints(platform):
    return [str(constraint) for constraint in PLATFORMS[platform]]

def _toolchains_repository_impl(rctx):
    text = _HEADER
    groups = {}
    bases = []
    settings = {}
    for repository, key in sorted(rctx.attr.environments.items()):
        group, platform, mode = key.split(":")
        settings[(platform, mode)] = _SETTING.format(
            constraints = _constraints(platform),
            flag = Label("//executorch/settings:toolchain_mode"),
            mode = mode,
            platform = platform,
        )
        if group:
            groups.setdefault(group, []).append((platform, mode, repository))
        else:
            bases.append((platform, mode, repository))
            text += _TOOLCHAIN.format(
                constraints = _constraints(platform),
                mode = mode,
                platform = platform,
                repository = repository,
                setting = Label("//executorch/settings:toolchain_mode_" + mode),
                toolchain_type = Label("//executorch:toolchain_type"),
            )
    text += "".join(settings.values())
    groups.update({group: bases for group in rctx.attr.groups_of_the_base})
    for group, environments in groups.items():
        text += _GROUP.format(
            choices = {
                ":is_{}_{}".format(platform, mode): "@{}//:toolchain".format(repository)
                for platform, mode, repository in environments
            },
            group = group,
            platforms = ", ".join({platform: None for platform, _, _ in environments}.keys()),
        )
    for name, target in _RUNTIME_TARGETS.items():
        text += _RUNTIME.format(
            choices = {
                ":is_{}_{}".format(platform, mode): "@{}//runtime:{}".format(repository, target)
                for platform, mode, repository in bases
            },
            name = name,
            platforms = ", ".join({platform: None for platform, _, _ in bases}.keys()),
        )
    rctx.file("BUILD.bazel", text, executable = False)

toolchains_repository = repository_rule(
    implementation = _toolchains_repository_impl,
    doc = "Toolchains of all platforms and modes, and aliases for the groups of packages and the C++ runtime.",
    attrs = {
        "environments": attr.string_dict(
            mandatory = True,
            doc = "Name of an environment's repository: GROUP:PLATFORM:MODE, with an empty GROUP for the base.",
        ),
        "groups_of_the_base": attr.string_list(
            doc = "Groups that are no layer: what they need is in the base itself, or a lowering says what is missing.",
        ),
    },
)
