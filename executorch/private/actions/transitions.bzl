"""Configuration transitions."""

visibility("//executorch/private/rules")

def _normalize_impl(_settings, _attr):
    return {
        "//command_line_option:compilation_mode": "fastbuild",
        "//command_line_option:cpu": "executorch",
        "//command_line_option:platforms": [str(Label("//executorch/private:any_platform"))],
    }

# A checkpoint, an exported program and a lowered one are the same files whatever an app is built
# for: the device is an attribute, not the platform of the build. Without this an app for two
# platforms would export and lower each model twice.
normalize = transition(
    implementation = _normalize_impl,
    inputs = [],
    outputs = [
        "//command_line_option:compilation_mode",
        "//command_line_option:cpu",
        "//command_line_option:platforms",
    ],
)

# Bazel 7 wants this attribute on every rule with a transition.
TRANSITION_ATTRS = {
    "_allowlist_function_transition": attr.label(
        default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
    ),
}
