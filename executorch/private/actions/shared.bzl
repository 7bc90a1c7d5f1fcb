"""Files that are made once, whatever they are built for, and found where a build puts its outputs.

A checkpoint, an exported program and a lowered one are the same files for every platform and
compilation mode, so what makes them is a target NAME.shared in a configuration of its own. Bazel
prints no path of such a target, and `bazel-bin` is not where its files are. So the target that a
person builds, NAME, is in the ordinary configuration and links them.
"""

load("//executorch/private/checks:labels.bzl", "SHARED")

visibility("//executorch/...")

# Attributes that every rule has, as far as they concern an action or who may depend on its target.
# Not `target_compatible_with`: the configuration of the target has no platform.
_INHERITED = [
    "compatible_with",
    "exec_compatible_with",
    "exec_properties",
    "restricted_to",
    "testonly",
]

def shared_attributes(name, attributes):
    """Attributes of NAME.shared that follow from those of NAME.

    Args:
        name: NAME.
        attributes: a dict of attributes that every rule has, of NAME.

    Returns:
        A dict.
    """
    inherited = {key: attributes[key] for key in _INHERITED if key in attributes}
    return inherited | {
        "name": name + SHARED,
        "tags": (attributes.get("tags") or []) + ["manual"],
        "visibility": ["//visibility:private"],
    }

def _here(ctx, file):
    """The file, or a link to it, where this configuration has its outputs."""
    if file.is_source or file.root.path == ctx.bin_dir.path:
        return file
    package = "/".join([part for part in [ctx.label.workspace_root.removeprefix("external/"), ctx.label.package] if part])
    path = file.short_path.removeprefix("../")
    link = ctx.actions.declare_file(path.removeprefix(package + "/") if package else path)
    ctx.actions.symlink(output = link, target_file = file)
    return link

def linked_providers(ctx, files, groups):
    """Providers of a target that has the files of another, linked into its own configuration.

    Args:
        ctx: the rule context.
        files: depset of Files, of this package.
        groups: dict from the name of an output group to a depset of Files, of this package.

    Returns:
        A list of providers. The links are made as far as they are asked for.
    """
    links = {}
    for group in [files] + groups.values():
        for file in group.to_list():
            if file not in links:
                links[file] = _here(ctx, file)
    outputs = depset([links[file] for file in files.to_list()])
    return [
        DefaultInfo(files = outputs, runfiles = ctx.runfiles(transitive_files = outputs)),
        OutputGroupInfo(**{
            name: depset([links[file] for file in group.to_list()])
            for name, group in groups.items()
        }),
    ]

def public_groups(target):
    """The output groups of a target that a person asks for; Bazel carries checks to who depends on it.

    Args:
        target: a Target.

    Returns:
        A dict from the name of an output group to a depset of Files.
    """
    if OutputGroupInfo not in target:
        return {}
    groups = target[OutputGroupInfo]
    return {name: groups[name] for name in groups if not name.startswith("_")}

def public_rule(providers, doc):
    """A rule whose target NAME has what NAME.shared makes.

    Args:
        providers: list of providers, which are passed on.
        doc: of the rule.

    Returns:
        A rule, to be assigned to what its kind is called.
    """

    def implementation(ctx):
        shared = ctx.attr.shared
        linked = linked_providers(ctx, shared[DefaultInfo].files, public_groups(shared))
        return linked + [shared[provider] for provider in providers]

    return rule(
        implementation = implementation,
        attrs = {"shared": attr.label(mandatory = True, providers = [providers])},
        doc = doc,
        provides = providers,
    )
