"""Requests from one process to another."""

from __future__ import annotations

import msgspec

from pilotlight_gateway.bodies.model_request import ModelRequest, received, sent, user_of
from pilotlight_gateway.bodies.worker_frames import WorkReply


def test_a_request_arrives_as_it_was_sent() -> None:
    """With its values byte by byte, also those that are the same twice."""
    request = ModelRequest(
        model="m", stream=True, fields={"a": msgspec.Raw(b"[1,  2]"), "b": msgspec.Raw(b'"x"')}, ignored=("c",),
        kept={"a": msgspec.Raw(b"7")}, count=3, as_base64=True, usage_so_far=True, user="ann",
    )  # fmt: skip
    told, values = sent(request)
    reply = msgspec.msgpack.decode(msgspec.msgpack.encode(WorkReply(asked=told)), type=WorkReply)
    assert reply.asked is not None
    found = received(reply.asked, values)

    assert {name: bytes(memoryview(raw)) for name, raw in found.fields.items()} == {"a": b"[1,  2]", "b": b'"x"'}
    assert {name: bytes(memoryview(raw)) for name, raw in found.kept.items()} == {"a": b"7"}
    assert msgspec.structs.replace(found, fields={}, kept={}) == msgspec.structs.replace(request, fields={}, kept={})


def test_a_user_is_a_text_that_is_not_too_long() -> None:
    """Whatever else a client writes there, its request is not refused for it."""
    named = {name: user_of({"user": msgspec.Raw(raw)}) for name, raw in (
        ("text", b'"ann"'), ("number", b"7"), ("long", b'"' + b"x" * 2_000 + b'"'), ("broken", b'"'),
    )}  # fmt: skip

    assert named == {"text": "ann", "number": "", "long": "", "broken": ""}
    assert user_of({}) == ""
