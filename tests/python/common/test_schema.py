"""Every form of a file has one definition, from which its schema follows."""

import dataclasses
import json
from typing import Any

import jsonschema
import pytest

from rules_executorch.cli import main
from rules_executorch.commands.schema import KINDS, find_kind
from rules_executorch.common import schema
from rules_executorch.common.errors import UserError


@dataclasses.dataclass(frozen=True)
class Inner(schema.Artifact):
    """One size."""

    size: schema.Positive
    """Bytes."""


@dataclasses.dataclass(frozen=True)
class Outer(schema.Artifact):
    """Several of them."""

    inner: tuple[Inner, ...]
    maybe: Inner | None = None


def parse(value: Any) -> Outer:
    return schema.parse(Outer, value, "The file", instead="Mend it.")


def test_a_value_becomes_its_type_and_back() -> None:
    value = {"inner": [{"size": 1}, {"size": 2}], "maybe": None}
    made = parse(value)
    assert made == Outer((Inner(1), Inner(2)))
    assert schema.to_json(made) == value


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([], "not valid at the top level: .* not of type 'object'"),
        ({}, "not valid at the top level: 'inner' is a required property"),
        ({"inner": [{"size": 0}]}, "inner.0.size: 0 is less than the minimum of 1. Mend it."),
        ({"inner": [{"size": True}]}, "inner.0.size: True is not of type 'integer'"),
        ({"inner": [], "maybe": {"size": 1, "colour": 2}}, "maybe: .*'colour' was unexpected"),
        ({"inner": [{"size": 1e30}]}, "not valid at inner.0.size: Unable to parse .*maximum size"),
        ({"inner": [], "other": 1}, "top level: .*'other' was unexpected"),
    ],
)
def test_what_is_wrong_is_a_sentence(value: Any, says: str) -> None:
    with pytest.raises(UserError, match=f"The file is {says}" if "valid" in says else says):
        parse(value)


@pytest.mark.parametrize("name", KINDS)
def test_the_command_prints_a_schema_that_says_what_each_key_is(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schema", name]) == 0
    printed = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(printed)
    assert printed["additionalProperties"] is False
    fields = {field.name for field in dataclasses.fields(find_kind(name))}
    assert set(printed["properties"]) == fields


def test_attribute_docstrings_become_descriptions() -> None:
    printed = schema.json_schema(Outer)
    assert printed["$defs"]["Inner"]["properties"]["size"]["description"] == "Bytes."
