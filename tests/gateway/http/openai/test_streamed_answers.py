"""Streams on the wire, byte by byte."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from pilotlight_core.model.errors import FunctionRaised, Unauthenticated
from pilotlight_core.model.spec import Mode
from pilotlight_core.model.tenancy import FunctionShareRecord
from pilotlight_gateway.http.calls.event_writer import TAKEN_BYTES
from pilotlight_gateway.http.openai.answer_forms import AnswerHead
from pilotlight_gateway.http.openai.chat_form import ChatStream
from pilotlight_gateway.http.openai.streamed_answers import FormSender
from pilotlight_gateway.http.protocol.http_exchange import SERVED, Exchange
from tests.gateway.http.asgi import Wire
from tests.gateway.http.asgi import ask as ask_by_hand
from tests.gateway.http.openai.models import NAME, chunks, generate, served
from tests.gateway.world import World, packed
from tests.waiting import until

BODY = {"model": NAME, "messages": [{"role": "user", "content": "hi"}], "stream": True}


async def streamed(world: World, body: dict[str, Any] | None = None) -> str:
    """What a client gets."""
    async with world.client() as client:
        answer = await client.post("/v1/chat/completions", json=body or BODY)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    return answer.text


async def test_only_data_is_sent(world: World) -> None:
    """No names, numbers or times: they make stock clients fail."""
    served(world)
    world.calls.events = chunks("a\nid: 7\nevent: x", "b")
    lines = (await streamed(world)).splitlines()
    assert {line.partition(":")[0] for line in lines if line} == {"data"}
    assert lines[-2] == "data: [DONE]"


async def test_what_is_ready_together_goes_in_one_write(world: World) -> None:
    """However many chunks."""
    served(world)
    world.calls.bunches = [list(chunks(*"abc"))]
    wire = Wire(pieces=[msgspec.json.encode(BODY)])
    key = f"Bearer {world.key}"
    await ask_by_hand(
        world.app, wire, "POST", "/v1/chat/completions", authorization=key, content_type="application/json"
    )
    bodies = [message["body"] for message in wire.sent if message.get("body")]
    assert [body.count(b"data: ") for body in bodies] == [4, 2]


async def test_a_function_that_returns_is_streamed_too(world: World) -> None:
    """As one chunk."""
    served(world, generate(mode=Mode.UNARY))
    world.calls.output = msgspec.msgpack.encode({"text": "all", "finish_reason": "length"})
    text = await streamed(world)
    assert '"content":"all"' in text
    assert '"finish_reason":"length"' in text


async def test_what_breaks_off_ends_with_an_error(world: World) -> None:
    """Of the function, or because of what it yields; there is no end behind it."""
    served(world)
    world.calls.events = chunks("a", {"text": 7})
    text = await streamed(world)
    last = [line for line in text.splitlines() if line][-1]
    assert msgspec.json.decode(last.removeprefix("data: "))["error"]["code"] == "bad_output"
    assert "[DONE]" not in text


async def test_anothers_function_says_nothing_of_itself(world: World) -> None:
    """When it raises in the middle."""
    served(world, tenant="zoo")
    world.add_key("zoo")
    world.registry.share_records["zoo", "shop"] = FunctionShareRecord(tenant="zoo", app="shop", grants={"acme": ()})
    world.calls.events, world.calls.error = chunks("a"), FunctionRaised("hush-hush", traceback="hush-hush")
    text = await streamed(world, BODY | {"model": "zoo:shop.tells"})
    assert "function_raised" in text
    assert "hush-hush" not in text


async def test_a_revoked_key_ends_its_stream(world: World) -> None:
    """With its reason."""
    served(world)
    world.calls.events, world.calls.hold = chunks("a"), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(streamed(world))
        await until(lambda: world.calls.seen)
        await until(lambda: world.services.metrics.first_chunk.sum > 0)
        world.services.requests.end_revoked(lambda _: Unauthenticated("Revoked."))
    assert "Revoked." in asking.result()


class Served:
    """A server whose client reads, or not."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.takes_pieces = True
        self.pieces: list[bytes] = []

    def send_piece(self, piece: bytes) -> bool:
        self.pieces.append(piece)
        return True


async def test_chunks_are_written_as_they_come_behind_the_first_event() -> None:
    """Text as events, what is none yet not at all; what is long or wrong, or has to be read for, is the task's."""
    served = Served()
    form = ChatStream(AnswerHead(call_id="call_1", model="m", created_at=7, version="v"), include_usage=False)
    told: list[int] = []
    sender = FormSender(form, Exchange({SERVED: served}, Wire(pieces=()).send, 0.0), told.append)
    (text, nothing, wrong, long) = packed({"text": "a"}, {"text": ""}, {"text": 7}, "x" * TAKEN_BYTES)
    assert not sender.take(1, (text,))
    sender.has_begun = True
    assert sender.take(1, (text, nothing))
    assert sender.take(3, (nothing,))
    assert [piece.count(b"data: ") for piece in served.pieces] == [1]
    assert not sender.take(4, (text, wrong))
    assert not sender.take(4, (long,))
    served.takes_pieces = False
    assert not sender.take(4, (text,))
    assert len(served.pieces) == 1
