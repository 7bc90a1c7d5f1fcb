"""Writing outputs: whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from typing import Any

from rules_executorch.common.errors import UserError


@contextlib.contextmanager
def whole_file(path: str) -> Iterator[str]:
    """Yields a temporary path beside `path`, renamed to `path` if the block succeeds.

    Raises:
        UserError: the disk is full; the half-written file is gone.
    """
    part = f"{path}.part"
    try:
        yield part
        os.replace(part, path)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(
                f"The disk is full: {path} could not be written.",
                instead="Free some space on the output base's file system and build again.",
            ) from error
        raise
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)


def write_json(path: str, value: Any) -> None:
    """Writes `value` as canonical JSON: sorted keys, two spaces, a final newline, ASCII only."""
    with whole_file(path) as part, open(part, "w", encoding="ascii") as file:
        json.dump(value, file, indent=2, sort_keys=True, ensure_ascii=True)
        file.write("\n")


def read_json(
    path: str, what: str, *, instead: str = "Fetch the file again from the model's repository."
) -> Any:
    """Reads a JSON file.

    Args:
        path: the file.
        what: how the error names the file, for example `config.json`.
        instead: what the error says to do with a file that is no JSON.

    Raises:
        UserError: there is no such file, or it is not UTF-8 JSON.
    """
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError as error:
        raise UserError(f"{what} is not there: {path}.", instead="Check the path.") from error
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{what} ({os.path.basename(path)}) is not readable as JSON: {error}.",
            instead=instead,
        ) from error
