"""Refusals in words: the target, what is wrong and why, and what to write instead."""

load("//executorch/private/checks:labels.bzl", "public_label")

visibility("//executorch/private/...")

def display_label(label):
    """A label as a person writes it: without the `@@` of the main repository.

    Args:
        label: a Label.

    Returns:
        A string, for example `//models:tiny_llama`.
    """
    text = str(public_label(label))
    for prefix in ["@@//", "@//"]:
        if text.startswith(prefix):
            return text[len(prefix) - 2:]
    return text

def refuse(ctx, what, instead):
    """Stops the analysis of a target.

    Args:
        ctx: the rule context.
        what: full sentences that say what is refused and why.
        instead: a full sentence that says what to write instead.
    """
    fail("\n\nERROR in {}: {} {}\n".format(display_label(ctx.label), what, instead))

def quoted(values):
    """Values as a sentence lists them.

    Args:
        values: list of strings, not empty.

    Returns:
        A string, for example `"a", "b" or "c"`.
    """
    words = ["\"{}\"".format(value) for value in values]
    if len(words) == 1:
        return words[0]
    return "{} or {}".format(", ".join(words[:-1]), words[-1])

def check_one_of(ctx, attribute, value, allowed):
    """Refuses a string attribute whose value is not known.

    Args:
        ctx: the rule context.
        attribute: name of the attribute.
        value: its value.
        allowed: list of the strings that are known.
    """
    if value not in allowed:
        refuse(
            ctx,
            "{} = \"{}\" is not known.".format(attribute, value),
            "Write {}.".format(quoted(allowed)),
        )

def check_at_least(ctx, attribute, value, minimum):
    """Refuses an integer attribute below its minimum.

    Args:
        ctx: the rule context.
        attribute: name of the attribute.
        value: its value.
        minimum: the least value.
    """
    if value < minimum:
        refuse(
            ctx,
            "{} = {} is too small.".format(attribute, value),
            "Write {} = {} or more.".format(attribute, minimum),
        )
