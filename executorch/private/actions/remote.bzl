"""What a remote cache and remote execution may do with an action."""

load("//executorch/private/checks:messages.bzl", "check_one_of")

visibility([
    "//executorch/private/rules",
    "//tests/starlark",
])

# Name: execution requirements of Bazel.
_POLICIES = {
    "default": {},
    # An executor would keep the outputs in its cache.
    "no_upload": {"no-remote-cache-upload": "1", "no-remote-exec": "1"},
    "local": {"no-remote": "1"},
}

def remote_requirements(ctx, remote):
    """What Bazel has to know of a policy.

    Args:
        ctx: the rule context.
        remote: value of the `remote` attribute.

    Returns:
        Execution requirements, a dict.
    """
    check_one_of(ctx, "remote", remote, _POLICIES.keys())
    return _POLICIES[remote]
