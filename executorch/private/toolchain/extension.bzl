"""The module extension `executorch`; users load it from //executorch:extensions.bzl."""

load(":environment_repository.bzl", "environment_repository")
load(":toolchains_repository.bzl", "toolchains_repository")
load(":versions.bzl", "DEFAULT_VERSION", "GROUPS", "LOCKS", "PLATFORMS")

visibility("//executorch")

_MODES = ["pinned", "declared"]

_REPORTED = ["executorch", "torch", "torchao", "transformers"]

_toolchain = tag_class(
    doc = "The Python packages that compile models. Only the root module's tag counts; without one, the default is used.",
    attrs = {
        "version": attr.string(
            default = DEFAULT_VERSION,
            doc = "Version of executorch, one that the ruleset has a lock for.",
        ),
        "locks": attr.label_keyed_string_dict(
            doc = "Locks of your own instead of the ruleset's: {lock: platform}, where a platform is " +
                  ", ".join(PLATFORMS.keys()) + ". The ruleset's own are made by `uv pip compile --generate-hashes`.",
        ),
        "python": attr.label(
            doc = "A Python 3.11 to use instead of the one on PATH, for example \"@python_3_11_host//:python\" of rules_python.",
        ),
    },
)

def _refuse(what, instead):
    fail("\n\nERROR in executorch.toolchain: {} {}\n".format(what, instead))

def _root_tag(mctx):
    for module in mctx.modules:
        if module.is_root and module.tags.toolchain:
            if len(module.tags.toolchain) > 1:
                _refuse("MODULE.bazel has {} of these tags.".format(len(module.tags.toolchain)), "Keep one of them.")
            return module.tags.toolchain[0]
    return None

def _locks(tag):
    if tag and tag.locks:
        unknown = [platform for platform in tag.locks.values() if platform not in PLATFORMS]
        if unknown:
            _refuse("{} is not a platform.".format(repr(unknown[0])), "Write one of {}.".format(", ".join(PLATFORMS.keys())))
        return {platform: lock for lock, platform in tag.locks.items()}
    version = tag.version if tag else DEFAULT_VERSION
    if version not in LOCKS:
        _refuse(
            "version = \"{}\" has no lock in this release of rules_executorch.".format(version),
            "Write one of {}, or give locks of your own with `locks`.".format(", ".join(LOCKS.keys())),
        )
    return LOCKS[version]

def _versions(text):
    """The versions that a lock names, of the packages that rules and manifests ask for."""
    found = {}
    for line in text.split("\n"):
        name, equals, rest = line.partition("==")
        if equals and name in _REPORTED:
            found[name] = rest.split(" ")[0].strip()
    return found

def _groups(tag):
    # Layers fit only the base that they were resolved with, not locks of a user.
    if tag and tag.locks:
        return {}
    return GROUPS[tag.version if tag else DEFAULT_VERSION]

def _executorch_impl(mctx):
    tag = _root_tag(mctx)
    bases = _locks(tag)
    stacks = {("", platform): [lock] for platform, lock in bases.items()}
    layers = _groups(tag)
    for group, locks in layers.items():
        for platform, lock in locks.items():
            stacks[(group, platform)] = [bases[platform], lock]
    environments = {}
    for (group, platform), locks in stacks.items():
        versions = _versions(mctx.read(locks[0]))
        for mode in _MODES:
            repository = "_".join(["executorch", platform] + ([group] if group else []) + [mode])
            environments[repository] = "{}:{}:{}".format(group, platform, mode)
            environment_repository(
                name = repository,
                locks = locks,
                mode = mode,
                platform = platform,
                python = tag.python if tag else None,
                versions = versions,
            )
    toolchains_repository(
        name = "executorch_toolchains",
        environments = environments,
        # A device's packages follow from its backend, so its group has to be there.
        groups_of_the_base = [group for group in GROUPS[DEFAULT_VERSION] if group not in layers],
    )
    return mctx.extension_metadata(reproducible = True)

executorch = module_extension(
    implementation = _executorch_impl,
    doc = """The toolchain of the actions.

`@executorch_toolchains//:all` has a toolchain for each platform and mode, and `@executorch_toolchains//:GROUP` the same
packages with those of a backend on top. They are installed when an action first needs them.""",
    tag_classes = {"toolchain": _toolchain},
)
