"""Values and events that cannot be read."""

from __future__ import annotations

import base64
import sys
from typing import Any

import pytest

from pilotlight.client.transport.wire import OutgoingCall, read_json, value_in
from pilotlight.definitions.errors import BadInput, BadOutput, DeadlineExceeded
from pilotlight_core.model import values
from tests.sdk.scripted import typed


@pytest.mark.parametrize(
    "event",
    [
        {"output_b64": "%%%"},
        {"output_b64": base64.b64encode(b"\xc1").decode()},
        {"output_b64": base64.b64encode(b"\xd4\x09\x00").decode()},
    ],
    ids=["no base64", "no msgpack", "an unknown extension"],
)
def test_an_answer_that_cannot_be_read_is_bad_output(event: dict[str, Any]) -> None:
    """It does not look like an error of the caller."""
    with pytest.raises(BadOutput, match="cannot be read"):
        value_in(event, "output")
    with pytest.raises(BadOutput, match="cannot be read"):
        read_json(b"[1]")


def test_an_array_needs_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the library."""
    import numpy

    event = {"output_b64": typed(numpy.zeros(3))}
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(BadOutput, match="numpy is not installed here"):
        value_in(event, "output")


@pytest.mark.parametrize("value", [object(), 2**70, {1, object()}])
def test_a_value_that_cannot_be_sent_is_refused(value: Any) -> None:
    """The error names the type."""
    with pytest.raises(BadInput, match="cannot be sent"):
        OutgoingCall(path="/", input={"a": value}).body(None)


def test_a_body_has_only_given_fields() -> None:
    """A field that is None is left out."""
    assert values.decode(OutgoingCall(path="/", input={"a": 1}).body(None)) == {"input": {"a": 1}}
    body = values.decode(OutgoingCall(path="/", input={}, method="m", id="cid_1").body(1.5))
    assert body == {"input": {}, "method": "m", "id": "cid_1", "deadline_ms": 1500.0}


def test_a_call_without_time_is_not_sent() -> None:
    """Its deadline has passed; the platform would call the deadline wrong."""
    outgoing = OutgoingCall(path="/", input={}, method=None, id=None, typed=False)
    assert b"deadline_ms" in outgoing.body(0.001)
    with pytest.raises(DeadlineExceeded, match="before the call was sent"):
        outgoing.body(0.0)


def test_whom_a_call_is_for_is_a_header() -> None:
    """A rollout may go by it; a call that says nothing has none."""
    assert OutgoingCall(path="", input={}, sticky="ann").headers == {"Pilotlight-Sticky": "ann"}
    assert OutgoingCall(path="", input={}).headers == {}
