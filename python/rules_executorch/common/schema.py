"""One definition gives a type and its JSON schema, and one function checks values against schemas.

A file of this project is an `Artifact`: a dataclass whose annotations say what its JSON may be.
Rests on pydantic, which makes the schema of a dataclass and the dataclass of a value, and on
jsonschema, which words what is wrong with a value.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from rules_executorch.common.errors import UserError
from rules_executorch.common.files import read_json, write_json

Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]

_LONGEST = 300
"""Characters of a sentence about a value, which may repeat the whole value."""


class Artifact:
    """Base of the dataclasses that are a form of JSON; a key that they do not have is refused."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", use_attribute_docstrings=True
    )


Made = TypeVar("Made")


@dataclasses.dataclass(frozen=True)
class Problem:
    """What is wrong with a value.

    Attributes:
        where: keys and indices down to it, with dots; `the top level` for the value itself.
        message: a clause, without its full stop.
    """

    where: str
    message: str


@functools.cache
def _adapter_and_schema(kind: Any) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    adapter = TypeAdapter(kind)
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return adapter, {"$schema": dialect, **adapter.json_schema()}


def json_schema(kind: type[Any]) -> dict[str, Any]:
    """The JSON schema, draft 2020-12, of an `Artifact`."""
    key: Any = kind  # For mypy a class is not hashable.
    return _adapter_and_schema(key)[1]


def find_problem(schema: Mapping[str, Any], value: Any) -> Problem | None:
    """What most likely is wrong with a value, or None if it is as the schema wants it.

    Args:
        schema: a JSON schema, draft 2020-12.
        value: as `json` parses it.
    """
    import jsonschema

    found = jsonschema.Draft202012Validator(schema).iter_errors(value)
    error = jsonschema.exceptions.best_match(found)
    if error is None:
        return None
    where = ".".join(map(str, error.absolute_path)) or "the top level"
    return Problem(where, error.message[:_LONGEST])


def _fields(value: Artifact) -> dict[str, Any]:
    # An artifact is a dataclass, which no type of a base can say.
    assert dataclasses.is_dataclass(value)
    return dataclasses.asdict(value)


def to_json(value: Artifact) -> dict[str, Any]:
    """An artifact as `json` would parse it: dictionaries and lists."""
    return json.loads(json.dumps(_fields(value)))


def write(path: str, value: Artifact) -> None:
    """Writes an artifact as canonical JSON, whole or not at all."""
    write_json(path, _fields(value))


def parse(kind: type[Made], value: Any, what: str, *, instead: str) -> Made:
    """Makes an artifact of what `json` parsed.

    Args:
        kind: the dataclass.
        value: parsed JSON.
        what: how the error names the value, for example `The options file x.json`.
        instead: what the error says to do.

    Raises:
        UserError: the value is against the schema.
    """
    problem = find_problem(json_schema(kind), value)
    if problem is not None:
        raise UserError(
            f"{what} is not valid at {problem.where}: {problem.message}.", instead=instead
        )
    try:
        key: Any = kind
        made: Made = _adapter_and_schema(key)[0].validate_python(value)
        return made
    except ValidationError as error:
        # For jsonschema 1e30 is an integer; pydantic does not make one of it.
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the top level"
        raise UserError(
            f"{what} is not valid at {where}: {first['msg']}.", instead=instead
        ) from error


def read(kind: type[Made], path: str, what: str, *, instead: str) -> Made:
    """Reads a file that holds an artifact; see `parse`.

    Raises:
        UserError: there is no such file, it is not JSON, or it is against the schema.
    """
    value = read_json(path, what, instead=instead)
    return parse(kind, value, f"{what} {path}", instead=instead)
