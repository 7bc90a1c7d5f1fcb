"""`executorch_cc_embed`: a program as a constant array in C, for what has no file system.

```starlark
load("@rules_executorch//executorch:defs.bzl", "executorch_cc_embed")

executorch_cc_embed(
    name = "detector",
    program = ":detector_u55",
    section = "network_model_sec",
)
```

The target is a `cc_library`. With `#include "app/detector.h"`, for the package `app`, there are

```c
extern const unsigned char detector[1234];
extern const size_t detector_size;
```

The array is aligned as the runtime wants it, so that `BufferDataLoader(detector, detector_size)`
reads the program in place. The source is C99, for any compiler of C or C++.
"""

load("@rules_cc//cc:cc_library.bzl", "cc_library")
load("//executorch/private/rules:cc_embed.bzl", "executorch_cc_embed_files")

def executorch_cc_embed(name, program, symbol = None, alignment = 16, section = "", tags = [], **kwargs):
    """Declares a `cc_library` with a program.

    Args:
        name: name of the target; the files are `NAME.h` and `NAME.c`.
        program: the `executorch_lower` to embed; its weights have to be in the program.
        symbol: name of the array; by default NAME with underscores for what C does not take.
        alignment: of the array in bytes: a power of two, 16 or more.
        section: section of the object file, for a linker script that places the program.
        tags: of the targets.
        **kwargs: other attributes of the `cc_library`, such as `visibility`.
    """
    inherited = {
        key: kwargs[key]
        for key in ["compatible_with", "restricted_to", "target_compatible_with", "testonly"]
        if key in kwargs
    }
    executorch_cc_embed_files(
        name = name + "_files",
        alignment = alignment,
        header = name + ".h",
        program = program,
        section = section,
        source = name + ".c",
        symbol = symbol or "".join([c if c.isalnum() else "_" for c in name.elems()]),
        tags = tags + ["manual"],
        visibility = ["//visibility:private"],
        **inherited
    )
    cc_library(
        name = name,
        srcs = [name + ".c"],
        hdrs = [name + ".h"],
        tags = tags,
        **kwargs
    )
