"""Limits of a device: bytes of a program, planned memory, operators of the app's runtime."""

load("//executorch/private/checks:messages.bzl", "refuse")

visibility("//executorch/...")

_BYTES = ["max_program_bytes", "max_planned_bytes"]

LIMIT_ATTRS = {
    "allowed_operators": attr.string_list(doc = "Operators that may be called."),
    "limits_operators": attr.bool(doc = "Whether `allowed_operators` is a limit, also when it is empty."),
    "max_planned_bytes": attr.string(doc = "Bytes that a method plans; empty does not limit."),
    "max_program_bytes": attr.string(doc = "Bytes of the `.pte` and its `.ptd`; empty does not limit."),
    "runtime_operators": attr.label_list(
        allow_files = [".yaml"],
        doc = "`selected_operators.yaml` of the app's runtime.",
    ),
}

def limit_values(max_program_bytes, max_planned_bytes, allowed_operators, runtime_operators):
    """Values of `LIMIT_ATTRS` from what a macro takes.

    Args:
        max_program_bytes: an integer, or None.
        max_planned_bytes: an integer, or None.
        allowed_operators: a list of strings, or None.
        runtime_operators: a list of labels.

    Returns:
        A dict.
    """
    return {
        "allowed_operators": allowed_operators or [],
        "limits_operators": allowed_operators != None,
        "max_planned_bytes": "" if max_planned_bytes == None else str(max_planned_bytes),
        "max_program_bytes": "" if max_program_bytes == None else str(max_program_bytes),
        "runtime_operators": runtime_operators,
    }

def read_limits(ctx):
    """The limits that a target with `LIMIT_ATTRS` sets, those that it does not set are None.

    Args:
        ctx: the rule context.

    Returns:
        A struct of the ints `max_program_bytes` and `max_planned_bytes`, and `operators`, a struct
        of `allowed`, a list of strings, and `files`, a list of Files.
    """
    values = {}
    for name in _BYTES:
        text = getattr(ctx.attr, name)
        if text and not text.isdigit():
            refuse(ctx, "{} = {} is not a number of bytes.".format(name, text), "Write an integer, for example 2000000.")
        values[name] = int(text) if text else None
    operators = None
    if ctx.attr.limits_operators or ctx.files.runtime_operators:
        operators = struct(allowed = ctx.attr.allowed_operators, files = ctx.files.runtime_operators)
    return struct(operators = operators, **values)

def limit_arguments(limits):
    """Limits as arguments of the subcommand `budget`.

    Args:
        limits: from `read_limits`, or an `ExecutorchDeviceInfo`.

    Returns:
        A list of strings and Files.
    """
    arguments = []
    for name in _BYTES:
        value = getattr(limits, name)
        if value != None:
            arguments += ["--" + name.replace("_", "-"), str(value)]
    return arguments + operator_arguments(limits.operators)

def operator_arguments(operators):
    """The operators of a runtime as arguments of the subcommand `budget`.

    Args:
        operators: from `read_limits`, or None.

    Returns:
        A list of strings and Files.
    """
    if not operators:
        return []
    arguments = ["--allowed-operators"] + operators.allowed
    for file in operators.files:
        arguments += ["--runtime-operators", file]
    return arguments

def has_operators(operators, names):
    """Whether a runtime is known to have some operators.

    Args:
        operators: from `read_limits`, not None. Of its files nothing is known before they are read.
        names: list of strings.

    Returns:
        A bool.
    """
    return all([any([_matches(pattern, name) for pattern in operators.allowed]) for name in names])

def _matches(pattern, name):
    """Whether a name fits a pattern, in which `*` stands for anything."""
    parts = pattern.split("*")
    if len(parts) == 1:
        return pattern == name
    if not name.startswith(parts[0]) or not name.endswith(parts[-1]):
        return False
    position = len(parts[0])
    for part in parts[1:-1]:
        found = name.find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    return position + len(parts[-1]) <= len(name)
