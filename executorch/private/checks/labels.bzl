"""What a target is called, where two stand for what a person wrote as one.

A macro such as `executorch_export` declares NAME, which a person builds, and NAME.shared, which makes
its files once whatever they are built for; see actions/shared.bzl. Files, messages and providers know
it as NAME.
"""

visibility("//executorch/...")

SHARED = ".shared"

def public_name(label):
    """The name that a person gave a target.

    Args:
        label: a Label, of NAME or of NAME.shared.

    Returns:
        A string, NAME.
    """
    return label.name.removesuffix(SHARED)

def public_label(label):
    """The label of what a person declared.

    Args:
        label: a Label, of NAME or of NAME.shared.

    Returns:
        A Label, of NAME.
    """
    return label.same_package_label(public_name(label))
