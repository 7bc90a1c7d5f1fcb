"""The rule `executorch_sized_files`: a filegroup that knows how large its files are.

Repositories of checkpoints use it, so that an action can tell Bazel how much memory weights take
before it runs.
"""

load("//executorch/private/providers:file_sizes_info.bzl", "FileSizesInfo")

# Loaded by repositories that module extensions make.
visibility("public")

def _executorch_sized_files_impl(ctx):
    files = depset(ctx.files.srcs)
    return [
        DefaultInfo(files = files, runfiles = ctx.runfiles(transitive_files = files)),
        FileSizesInfo(bytes = {name: int(size) for name, size in ctx.attr.bytes.items()}),
    ]

executorch_sized_files = rule(
    implementation = _executorch_sized_files_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = True, doc = "The files."),
        "bytes": attr.string_dict(doc = "Sizes in bytes by base name; as text, since an attribute's int has 32 bits."),
    },
    doc = "Files with their sizes.",
    provides = [FileSizesInfo],
)
