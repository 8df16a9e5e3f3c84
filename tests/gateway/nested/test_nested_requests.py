"""Arguments by place become arguments by name."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.schema_examples import ORDER
from pilotlight_gateway.nested.nested_requests import named_request
from tests.builders.specs import function_spec, method, version_record

VERSION = version_record(function_spec("f", method(input_schema={"type": "object", ORDER: ["text", "times"]})))


def named(request: dict[str, Any]) -> dict[str, Any]:
    """The request with names."""
    found: dict[str, Any] = msgspec.msgpack.decode(named_request(msgspec.msgpack.encode(request), VERSION))
    return found


def test_what_has_names_stays_as_it_is() -> None:
    """Byte for byte."""
    request = msgspec.msgpack.encode({"input": {"text": "a"}, "deadline_ms": 5.0})

    assert named_request(request, VERSION) == request


def test_places_are_those_of_the_function() -> None:
    """Before the names, and beside all else of the request."""
    asked = {"args": ["a"], "input": {"times": 2}, "deadline_ms": 5.0}

    assert named(asked) == {"input": {"text": "a", "times": 2}, "deadline_ms": 5.0}


@pytest.mark.parametrize("asked", [{"args": [1, 2, 3]}, {"args": ["a"], "input": {"text": "b"}}])
def test_what_does_not_fit_is_refused(asked: dict[str, Any]) -> None:
    """With the parameters that it has."""
    with pytest.raises(BadInput, match=r"its parameters are \(text, times\)"):
        named(asked)


@pytest.mark.parametrize("request_", [b"\xc1", b"\x91\x01", msgspec.msgpack.encode({"args": 3})])
def test_what_cannot_be_read_is_refused(request_: bytes) -> None:
    """It comes from a guest."""
    with pytest.raises(BadInput, match="The request cannot be read"):
        named_request(request_, VERSION)


def test_without_an_order_names_are_needed() -> None:
    """Of functions whose schema was not written by the SDK."""
    with pytest.raises(BadInput, match="pass arguments by name"):
        named_request(msgspec.msgpack.encode({"args": [1]}), version_record())
