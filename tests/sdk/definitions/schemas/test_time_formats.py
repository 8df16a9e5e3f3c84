"""Instants and times have their format in schemas, wherever they stand."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Annotated, Any, TypedDict

import msgspec
import pytest

from pilotlight.definitions.schemas.schema import schema_of

Instant = datetime.datetime
TEXT = {"type": "string"}
INSTANT = {"type": "string", "format": "date-time"}


@dataclasses.dataclass
class Event:
    at: Instant
    name: str
    until: Instant | None = None
    causes: list[Event] = dataclasses.field(default_factory=list)


class Shift(TypedDict):
    begins: datetime.time


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (Instant, INSTANT),
        (Annotated[Instant, msgspec.Meta(tz=True)], INSTANT),
        (Instant | int | None, {"anyOf": [INSTANT, {"type": "integer"}, {"type": "null"}]}),
        (list[Instant], {"type": "array", "items": INSTANT}),
        (dict[str, Instant], {"type": "object", "additionalProperties": INSTANT}),
        (datetime.time, {"type": "string", "format": "time"}),
        (str, TEXT),
        (str | list[Instant], {"anyOf": [TEXT, {"type": "array", "items": INSTANT}]}),
    ],
)
def test_the_format_is_named(hint: Any, schema: Any) -> None:
    """Alone, in a union, in a list and in a dict; text stays text."""
    assert schema_of(hint, {}) == schema


def test_it_is_named_in_tuples_and_in_the_fields_of_types() -> None:
    """Also of types that refer to themselves, and of two in one union."""
    definitions: dict[str, Any] = {}
    schema_of(Event | list[Shift] | None, definitions)
    fields = definitions["Event"]["properties"]

    assert schema_of(tuple[Instant, int], {})["prefixItems"] == [INSTANT, {"type": "integer"}]
    assert (fields["at"], fields["name"], fields["until"]["anyOf"][0]) == (INSTANT, TEXT, INSTANT)
    assert definitions["Shift"]["properties"]["begins"]["format"] == "time"
