"""Calls on the wire: msgpack in requests, an event stream of JSON with base64 msgpack in answers."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from pilotlight.definitions.errors import BadInput, BadOutput, DeadlineExceeded, Misuse
from pilotlight_core.model import values

MSGPACK = "application/msgpack"
EVENTS = "text/event-stream"
TYPED = {"values": "msgpack"}
"""Asks for answers as base64 of msgpack, in which bytes and arrays keep their type."""


class OutgoingCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call, ready to be sent any number of times."""

    path: str
    input: dict[str, Any]
    method: str | None = None
    id: str | None = None
    typed: bool = True
    """Whether answers come as base64 of msgpack, rather than as JSON."""
    sticky: str = ""
    """Who stays on one side of a rollout; "": nobody."""

    @property
    def headers(self) -> dict[str, str]:
        """Return those that say it."""
        return {"Pilotlight-Sticky": self.sticky} if self.sticky else {}

    @property
    def params(self) -> dict[str, str]:
        return TYPED if self.typed else {}

    def body(self, left_s: float | None, **more: Any) -> bytes:
        """Return the request's body: the call, the `left_s` seconds of its deadline, and what of `more` is not None.

        Raises:
            Misuse: if an argument cannot be sent.
            DeadlineExceeded: if no time is left.
        """
        if left_s is not None and left_s <= 0:
            raise DeadlineExceeded("The deadline passed before the call was sent.")
        request: dict[str, Any] = {"input": self.input}
        named = {"method": self.method, "id": self.id, "deadline_ms": None if left_s is None else left_s * 1000, **more}
        request |= {key: value for key, value in named.items() if value is not None}
        try:
            return values.encode(request)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise Misuse(f"The arguments cannot be sent: {error}.", field="input") from error


def read_json(data: bytes | str) -> dict[str, Any]:
    """Return the object in an event's data.

    Raises:
        BadOutput: if there is none.
    """
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise BadOutput(f"The platform's answer cannot be read: {error}.") from error


def read_answer(body: bytes) -> Any:
    """Return the output in the msgpack answer of a call.

    Raises:
        BadOutput: if it cannot be read here.
    """
    try:
        return values.decode(body)["output"]
    except ModuleNotFoundError as error:
        raise BadOutput(f"The answer holds an array, and {error.name} is not installed here.") from error
    except (msgspec.DecodeError, BadInput, UnicodeDecodeError, KeyError, TypeError) as error:
        raise BadOutput(f"The platform's answer cannot be read: {error}.") from error


def value_in(event: dict[str, Any], name: str) -> Any:
    """Return an event's value of `name` or, typed, of `name_b64`.

    Raises:
        BadOutput: if it cannot be read here.
    """
    typed = event.get(f"{name}_b64")
    if typed is None:
        return event.get(name)
    try:
        return values.decode(base64.b64decode(typed, validate=True))
    except ModuleNotFoundError as error:
        raise BadOutput(f"The answer holds an array, and {error.name} is not installed here.") from error
    except (binascii.Error, msgspec.DecodeError, BadInput, UnicodeDecodeError) as error:
        raise BadOutput(f"The platform's answer cannot be read: {error}.") from error
