"""`for_platforms`: a target built for several platforms."""

def _each_impl(_settings, attr):
    return {
        str(platform): {"//command_line_option:platforms": [str(platform)]}
        for platform in attr.platforms
    }

_each = transition(
    implementation = _each_impl,
    inputs = [],
    outputs = ["//command_line_option:platforms"],
)

def _for_platforms_impl(ctx):
    return [DefaultInfo(files = depset(transitive = [target[DefaultInfo].files for target in ctx.attr.target]))]

for_platforms = rule(
    implementation = _for_platforms_impl,
    attrs = {
        "platforms": attr.label_list(mandatory = True),
        "target": attr.label(cfg = _each, mandatory = True),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)
