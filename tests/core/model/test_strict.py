"""What people write is held to the fields that there are; what processes write is not."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta

from pilotlight_core.model.api.call_api import CallRequest, DeployRequest
from pilotlight_core.model.strict import strict


class Inner(msgspec.Struct, frozen=True):
    number: Annotated[int, Meta(ge=0)] = 3


class Outer(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    one: Inner | None = None
    many: tuple[Inner, ...] = ()
    named: dict[str, list[Inner]] = {}
    kind: Literal["a", "b"] = "a"

    def __post_init__(self) -> None:
        if self.name == "bad":
            raise ValueError("bad")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"name": "x", "more": 1}', "unknown field `more`"),
        ('{"name": "x", "one": {"numbre": 1}}', r"`numbre` - at `\$.one`"),
        ('{"name": "x", "many": [{}, {"numbre": 1}]}', r"`numbre` - at `\$.many\[1\]`"),
        ('{"name": "x", "named": {"a": [{"numbre": 1}]}}', "numbre"),
        ('{"name": "x", "one": {"number": -1}}', "Expected `int` >= 0"),
        ('{"name": "bad"}', "bad"),
    ],
)
def test_an_unknown_field_is_refused_wherever_it_is(text: str, place: str) -> None:
    """With its place; all other rules of the type hold too."""
    with pytest.raises(msgspec.ValidationError, match=place):
        msgspec.json.decode(text, type=strict(Outer))


def test_defaults_and_values_are_the_types_own() -> None:
    """It is a subclass, made once."""
    read = msgspec.json.decode('{"name": "x", "many": [{}], "named": {"a": [{"number": 5}]}}', type=strict(Outer))

    assert isinstance(read, Outer)
    assert msgspec.to_builtins(read) == msgspec.to_builtins(
        Outer(name="x", many=(Inner(),), named={"a": [Inner(number=5)]})
    )
    assert strict(Outer) is strict(Outer)


def test_what_is_strict_already_stays() -> None:
    """A call is read as it is; a deploy has a spec in it, which is stored too."""
    assert strict(CallRequest) is CallRequest
    assert strict(strict(DeployRequest)) is strict(DeployRequest) is not DeployRequest
    assert strict(dict) is dict
