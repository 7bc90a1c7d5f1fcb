"""Which files of a model repository are wanted: `include` and `exclude`.

The patterns are those of `allow_patterns` and `ignore_patterns` of the hub's own client: `*` stands
for any characters, also `/`; `?` for one character; a pattern that ends in `/` means everything
below that folder; letters are compared with their case. Bracket expressions are refused, since a
file may be named `[1].json`. tests/hub/pattern_cases.bzl has the cases that the Python twin
(`rules_executorch/hub/patterns.py`) must decide alike.
"""

visibility(["//executorch/...", "//tests/hub/..."])

def _matches_at(piece, text, start):
    for index in range(len(piece)):
        if piece[index] != "?" and piece[index] != text[start + index]:
            return False
    return True

def matches(pattern, path):
    """Whether a pattern matches a whole path.

    Args:
        pattern: the pattern.
        path: path of a file in its repository, with `/`.

    Returns:
        A boolean.
    """
    if pattern.endswith("/"):
        pattern += "*"
    pieces = pattern.split("*")
    if len(pieces) == 1:
        return len(path) == len(pattern) and _matches_at(pattern, path, 0)
    first, last = pieces[0], pieces[-1]
    end = len(path) - len(last)
    if end < len(first) or not _matches_at(first, path, 0) or not _matches_at(last, path, end):
        return False

    # Between the two ends, the leftmost place of every piece leaves the most room for the next.
    position = len(first)
    for piece in pieces[1:-1]:
        found = -1
        for start in range(position, end - len(piece) + 1):
            if _matches_at(piece, path, start):
                found = start
                break
        if found < 0:
            return False
        position = found + len(piece)
    return True

def selected(paths, include, exclude):
    """The paths that match a pattern of `include` and none of `exclude`.

    Args:
        paths: list of paths.
        include: list of patterns; empty means everything.
        exclude: list of patterns.

    Returns:
        A list of paths, in the order given.
    """
    return [
        path
        for path in paths
        if (not include or any([matches(p, path) for p in include])) and
           not any([matches(p, path) for p in exclude])
    ]

def pattern_error(patterns):
    """What is wrong with a list of patterns.

    Args:
        patterns: list of patterns.

    Returns:
        A sentence, or None.
    """
    for pattern in patterns:
        if not pattern:
            return "An empty pattern matches no file."
        if "[" in pattern or "]" in pattern:
            return "The pattern \"{}\" has brackets; only * and ? have a meaning.".format(pattern)
    return None
