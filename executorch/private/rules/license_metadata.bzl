"""The licence of a model as metadata of rules_license, which an app's licence checks gather."""

load("@rules_license//rules:license_kind.bzl", "license_kind")
load("@rules_license//rules:package_info.bzl", "package_info")
load("@rules_license//rules:providers.bzl", "LicenseInfo", "LicenseKindInfo")
load("//executorch/private/checks:checkpoint_files.bzl", "license_texts")

visibility("//executorch")

# The hub writes these in lower case.
_SPDX = [
    "AFL-3.0",
    "AGPL-3.0",
    "Apache-2.0",
    "Artistic-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSD-3-Clause-Clear",
    "BSL-1.0",
    "C-UDA-1.0",
    "CC-BY-2.0",
    "CC-BY-2.5",
    "CC-BY-3.0",
    "CC-BY-4.0",
    "CC-BY-NC-2.0",
    "CC-BY-NC-3.0",
    "CC-BY-NC-4.0",
    "CC-BY-NC-ND-3.0",
    "CC-BY-NC-ND-4.0",
    "CC-BY-NC-SA-2.0",
    "CC-BY-NC-SA-3.0",
    "CC-BY-NC-SA-4.0",
    "CC-BY-ND-4.0",
    "CC-BY-SA-3.0",
    "CC-BY-SA-4.0",
    "CC0-1.0",
    "ECL-2.0",
    "EPL-1.0",
    "EPL-2.0",
    "EUPL-1.1",
    "EUPL-1.2",
    "GPL-2.0",
    "GPL-3.0",
    "ISC",
    "LGPL-2.1",
    "LGPL-3.0",
    "LPPL-1.3c",
    "MIT",
    "MPL-2.0",
    "MS-PL",
    "NCSA",
    "OFL-1.1",
    "OSL-3.0",
    "PostgreSQL",
    "Unlicense",
    "WTFPL",
    "Zlib",
]

_KINDS = {name.lower(): Label("@rules_license//licenses/spdx:" + name) for name in _SPDX}

def _executorch_model_license_impl(ctx):
    texts = license_texts(ctx.files.srcs)
    if texts:
        text = texts[0]
    else:
        # Those who gather licences write down the path of a text.
        text = ctx.actions.declare_file(ctx.label.name + ".txt")
        ctx.actions.write(text, "The model is under the licence {}.\n".format(ctx.attr.license))
    return [
        DefaultInfo(files = depset([text])),
        LicenseInfo(
            copyright_notice = "",
            label = ctx.label,
            license_kinds = (ctx.attr.kind[LicenseKindInfo],),
            license_text = text,
            package_name = ctx.attr.package_name,
            package_url = ctx.attr.package_url,
            package_version = ctx.attr.package_version,
        ),
    ]

# `license` of rules_license needs a text; here it is one of the checkpoint's files.
executorch_model_license = rule(
    implementation = _executorch_model_license_impl,
    attrs = {
        "kind": attr.label(mandatory = True, providers = [LicenseKindInfo]),
        "license": attr.string(mandatory = True),
        "package_name": attr.string(),
        "package_url": attr.string(),
        "package_version": attr.string(),
        "srcs": attr.label_list(allow_files = True, doc = "Files of the checkpoint."),
    },
    doc = "The licence of a model.",
    provides = [LicenseInfo],
)

def license_metadata(name, srcs, license, package_url, tags, visibility):
    """Declares NAME.license and NAME.package_info, as far as something is known.

    Args:
        name: name of the model.
        srcs: files of the checkpoint.
        license: the licence in the hub's words, or None.
        package_url: its package URL, or None.
        tags: of the model.
        visibility: of the targets.

    Returns:
        Labels for `applicable_licenses` of the model.
    """
    metadata = []
    version = package_url.rpartition("@")[2] if package_url and "@" in package_url else None
    if license:
        kind = _KINDS.get(license.lower())
        if not kind:
            kind = ":{}.license_kind".format(name)
            license_kind(
                name = name + ".license_kind",
                long_name = license,
                visibility = ["//visibility:private"],
            )
        executorch_model_license(
            name = name + ".license",
            srcs = srcs,
            kind = kind,
            license = license,
            package_name = name,
            package_url = package_url,
            package_version = version,
            tags = tags,
            visibility = visibility,
        )
        metadata.append(":{}.license".format(name))
    if package_url:
        package_info(
            name = name + ".package_info",
            package_name = name,
            package_url = package_url,
            package_version = version,
            visibility = visibility,
        )
        metadata.append(":{}.package_info".format(name))
    return metadata
