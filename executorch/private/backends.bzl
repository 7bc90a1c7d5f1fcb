"""Backends and the types of their options.

The same table as the Python registry's (`rules_executorch/backends`), which a test compares with
this one. It is here as well so that a wrong option is refused before anything is built.
"""

visibility("//...")

BACKENDS = {
    "portable": {},
    "xnnpack": {},
}
