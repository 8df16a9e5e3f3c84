"""Requests from one process to another."""

from __future__ import annotations

import msgspec

from pilotlight_gateway.bodies.model_request import ModelRequest, received, sent
from pilotlight_gateway.bodies.worker_frames import WorkReply


def test_a_request_arrives_as_it_was_sent() -> None:
    """With its values byte by byte, also those that are the same twice."""
    request = ModelRequest(
        model="m", stream=True, fields={"a": msgspec.Raw(b"[1,  2]"), "b": msgspec.Raw(b'"x"')}, ignored=("c",),
        kept={"a": msgspec.Raw(b"7")}, count=3, as_base64=True, usage_so_far=True,
    )  # fmt: skip
    told, values = sent(request)
    reply = msgspec.msgpack.decode(msgspec.msgpack.encode(WorkReply(asked=told)), type=WorkReply)
    assert reply.asked is not None
    found = received(reply.asked, values)

    assert {name: bytes(memoryview(raw)) for name, raw in found.fields.items()} == {"a": b"[1,  2]", "b": b'"x"'}
    assert {name: bytes(memoryview(raw)) for name, raw in found.kept.items()} == {"a": b"7"}
    assert msgspec.structs.replace(found, fields={}, kept={}) == msgspec.structs.replace(request, fields={}, kept={})
