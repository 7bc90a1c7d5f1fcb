"""The locks that come with the ruleset."""

visibility("//tools/toolchain/python")

DEFAULT_VERSION = "1.5.1"

# Version of executorch: {platform: lock}. `bazel run //tools/toolchain:lock` writes them.
LOCKS = {
    "1.5.1": {
        "linux_x86_64": Label("//tools/toolchain:requirements_linux_x86_64_cp311.lock"),
    },
}

# Packages of single backends, as layers on top: {version of executorch: {group: {platform: lock}}}.
GROUPS = {
    "1.5.1": {
        group: {
            "linux_x86_64": Label("//tools/toolchain:groups/{}_linux_x86_64_cp311.lock".format(group)),
        }
        for group in ["arm", "backend_tests", "coreml", "openvino"]
    },
}

# Platform: its constraints.
PLATFORMS = {
    "linux_aarch64": [Label("@platforms//os:linux"), Label("@platforms//cpu:aarch64")],
    "linux_x86_64": [Label("@platforms//os:linux"), Label("@platforms//cpu:x86_64")],
    "macos_aarch64": [Label("@platforms//os:macos"), Label("@platforms//cpu:aarch64")],
}
