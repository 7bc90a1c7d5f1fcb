"""JSON from a checkpoint: bounded in size and depth, no duplicate names, no NaN."""

from __future__ import annotations

import json
import os
from typing import Any

from rules_executorch.common.errors import UserError


class _Refused(ValueError):
    pass


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _Refused(f"the name {name[:200]!r} occurs twice")
            seen.add(name)
    return found


def _no_constant(name: str) -> Any:
    raise _Refused(f"{name} is not a value of JSON")


def _infinity_only(name: str) -> float:
    if name == "NaN":
        raise _Refused("NaN is not a value of JSON")
    return float(name)


def parse(data: bytes, *, allow_infinity: bool = False) -> Any:
    """Parses bytes as JSON.

    Args:
        data: UTF-8 text.
        allow_infinity: accept `Infinity`, which Python writes into some config files.

    Raises:
        ValueError: with a short clause that says what is wrong.
    """
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_no_duplicates,
            parse_constant=_infinity_only if allow_infinity else _no_constant,
        )
    except _Refused:
        raise
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at byte {error.pos}") from error


def read(path: str, *, limit: int, allow_infinity: bool = False) -> Any:
    """Reads a file that holds JSON.

    Args:
        path: the file.
        limit: bytes that such a file has at most.
        allow_infinity: see `parse`.

    Raises:
        UserError: the file is missing, longer than `limit`, or not JSON.
    """
    name = os.path.basename(path)
    refetch = f"Fetch {name} again from the model's repository."
    try:
        with open(path, "rb") as file:
            # A read of so many bytes would allocate them, whatever the file has.
            size = min(os.fstat(file.fileno()).st_size, limit)
            data = file.read(size + 1)
    except FileNotFoundError as error:
        raise UserError(f"The file {path} does not exist.", instead=refetch) from error
    if len(data) > limit:
        raise UserError(
            f"{path} is longer than {limit:,} bytes, more than a {name} has.", instead=refetch
        )
    try:
        return parse(data, allow_infinity=allow_infinity)
    except ValueError as error:
        raise UserError(f"{path} is not readable as JSON: {error}.", instead=refetch) from error


def read_object(path: str, *, limit: int, allow_infinity: bool = False) -> dict[str, Any]:
    """Reads a file that holds one JSON object; see `read`.

    Raises:
        UserError: see `read`; or it is not an object.
    """
    value = read(path, limit=limit, allow_infinity=allow_infinity)
    if not isinstance(value, dict):
        name = os.path.basename(path)
        raise UserError(
            f"{path} holds a JSON {type(value).__name__}, not an object.",
            instead=f"Fetch {name} again from the model's repository.",
        )
    return value
