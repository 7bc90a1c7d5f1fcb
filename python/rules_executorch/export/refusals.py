"""What torch says when it cannot trace a model, in one sentence.

`torch.export` fails with a page: its own explanation, and at the end a traceback that leads through
the model's source. What a person needs of it is the model's own line and the first sentence.
"""

from __future__ import annotations

import re
import tempfile
import traceback

from rules_executorch.common.errors import UserError

_FRAME = re.compile(
    r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)\n\s+(?P<code>.+)'
)
_MODELS = re.compile(r"/(transformers/models/.+)$")
_EXPLANATION = re.compile(r"Explanation: (.+)")


def first_line(error: BaseException) -> str:
    """The first line of what an error says, ending in a full stop."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return text if text.endswith(".") else f"{text}."


def model_line(error: BaseException) -> str | None:
    """The last line of a model's source on the way to an error: file, number and code."""
    found = None
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    for one in reversed(chain):
        frames: list[tuple[str, int | str | None, str | None]] = [
            (f.filename, f.lineno, f.line) for f in traceback.extract_tb(one.__traceback__)
        ]
        frames += [(m["file"], m["line"], m["code"]) for m in _FRAME.finditer(str(one))]
        for file, line, code in frames:
            inside = _MODELS.search(file)
            if inside:
                found = f"{inside[1]}, line {line}: {(code or '').strip()}"
    return found


def write_trace(error: BaseException) -> str:
    """Writes an error with its whole traceback to a temporary file; gives its path."""
    with tempfile.NamedTemporaryFile(
        "w", prefix="rules_executorch-trace-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        file.writelines(traceback.format_exception(error))
        return file.name


def cannot_trace(error: Exception, architecture: str, trace: str | None = None) -> UserError:
    """The refusal of a model that torch cannot trace.

    Args:
        error: what `torch.export` raised.
        architecture: the model's class.
        trace: path of a file that has the whole trace, if one was written.
    """
    explained = _EXPLANATION.search(str(error))
    why = first_line(error).rstrip(".")
    if explained:
        why = f"{why} ({explained[1].strip().rstrip('.')})"
    where = model_line(error)
    return UserError(
        f"torch cannot trace {architecture}: {why}{f', at {where}' if where else ''}.",
        instead=(f"The whole trace is in {trace}. " if trace else "")
        + "Choose another architecture, or a transformers in which this line can be traced.",
    )
