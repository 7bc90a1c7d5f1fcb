"""The provider of `executorch_sized_files`."""

visibility("//executorch/private/rules")

DOC = """Sizes of files that were known when their repository was made: Starlark cannot ask for them."""

FIELDS = {
    "bytes": "dict from base names to sizes in bytes.",
}

FileSizesInfo = provider(doc = DOC, fields = FIELDS)
