"""The repositories that hold no content: a model's files by name, and where contents are."""

visibility("private")

# The repositories see this module by its canonical name only.
_SIZED_FILES = str(Label("//executorch/private/rules:sized_files.bzl"))

_BUILD = """\
load("{module}", "executorch_sized_files")

package(default_visibility = ["//visibility:public"])

# {repo} at revision {revision}
executorch_sized_files(
    name = "files",
    bytes = {bytes},
    srcs = {srcs},
)
"""

# What hf_model takes as the place that its files come from.
_SOURCE = "huggingface.json"

_ALIAS = """
alias(
    name = {name},
    actual = {actual},
)
"""

def _hub_model_impl(rctx):
    files = rctx.attr.files
    text = _BUILD.format(
        repo = rctx.attr.repo,
        revision = rctx.attr.revision,
        module = _SIZED_FILES,
        bytes = json.encode_indent(
            {path.rpartition("/")[2]: size for path, size in sorted(rctx.attr.bytes.items())},
            indent = "    ",
        ).replace("\n", "\n    "),
        srcs = json.encode_indent(
            [files[path] for path in sorted(files)] + ([] if _SOURCE in files else [_SOURCE]),
            indent = "    ",
        ).replace("\n", "\n    "),
    )
    for path, content in sorted(files.items()):
        # A file may have the group's name; then it is in the group only.
        if path != "files":
            text += _ALIAS.format(name = repr(path), actual = repr(content))
    if _SOURCE not in files:
        rctx.file(_SOURCE, json.encode_indent({"repo": rctx.attr.repo, "revision": rctx.attr.revision}, indent = "  ") + "\n")
    rctx.file("BUILD.bazel", text)
    return rctx.repo_metadata(reproducible = True) if hasattr(rctx, "repo_metadata") else None

hub_model = repository_rule(
    implementation = _hub_model_impl,
    attrs = {
        "bytes": attr.string_dict(mandatory = True, doc = "Sizes of the contents by path, in bytes."),
        "files": attr.string_dict(mandatory = True, doc = "Labels of the contents by path."),
        "repo": attr.string(mandatory = True),
        "revision": attr.string(mandatory = True),
    },
    doc = "A model: `:files`, and every file under its own name. Nothing is fetched that is not used.",
)

def _hub_refusal_impl(rctx):
    fail(rctx.attr.message)

hub_refusal = repository_rule(
    implementation = _hub_refusal_impl,
    attrs = {"message": attr.string(mandatory = True)},
    doc = "A model that cannot be fetched. It fails when it is used, so that other models still build.",
)

def _hub_locations_impl(rctx):
    rctx.file("locations.json", rctx.attr.locations)
    rctx.file("BUILD.bazel", "")
    return rctx.repo_metadata(reproducible = True) if hasattr(rctx, "repo_metadata") else None

hub_locations = repository_rule(
    implementation = _hub_locations_impl,
    attrs = {"locations": attr.string(mandatory = True, doc = "The JSON text.")},
    doc = "Where the hub has each content.",
)
