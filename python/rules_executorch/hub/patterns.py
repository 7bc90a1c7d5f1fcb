"""Which files of a model repository are wanted.

The same as executorch/private/huggingface/patterns.bzl, which documents the patterns; the cases in
tests/hub/pattern_cases.bzl hold for both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rules_executorch.common.errors import UserError


def matches(pattern: str, path: str) -> bool:
    """Whether a pattern matches a whole path."""
    if pattern.endswith("/"):
        pattern += "*"
    wild = {"*": ".*", "?": "."}
    expression = "".join(wild.get(character, re.escape(character)) for character in pattern)
    return re.fullmatch(expression, path, re.DOTALL) is not None


def selected(paths: Iterable[str], include: Sequence[str], exclude: Sequence[str]) -> list[str]:
    """The paths that match one of `include` (all, if it is empty) and none of `exclude`."""
    return [
        path
        for path in paths
        if (not include or any(matches(pattern, path) for pattern in include))
        and not any(matches(pattern, path) for pattern in exclude)
    ]


def check(patterns: Iterable[str]) -> None:
    """Refuses patterns that the build would refuse too.

    Raises:
        UserError: a pattern is empty or has brackets.
    """
    for pattern in patterns:
        if not pattern or "[" in pattern or "]" in pattern:
            raise UserError(
                f"The pattern {pattern!r} is empty or has brackets; only * and ? have a meaning.",
                instead="Write patterns such as '*.json' or 'onnx/'.",
            )
