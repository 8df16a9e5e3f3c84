"""Streams that are read at another gateway than the one that has them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pilotlight_core.model.errors import PilotlightError, UnknownCall
from pilotlight_core.model.ids import new_call_id
from pilotlight_gateway.streams.stream_exchange import StreamExchange
from tests.gateway.stream_gateways import HandlerBus, gateway_of

GATEWAYS = {3: "gw1", 4: "gw2"}


@asynccontextmanager
async def two_gateways() -> AsyncIterator[tuple[StreamExchange, StreamExchange]]:
    """Both answer each other."""
    bus = HandlerBus()
    one, other = (gateway_of(bus, GATEWAYS, name) for name in ("gw1", "gw2"))
    async with one.running(), other.running():
        yield one, other


def call_of(epoch: int) -> str:
    return new_call_id("local", epoch, 1.0)


async def read_all(exchange: StreamExchange, tenant: str, call_id: str, after: int) -> bytes:
    source, found, is_over = exchange.open(tenant, call_id, after), b"", False
    try:
        while not is_over:
            data, is_over = await source.read()
            found += data
    finally:
        source.close()
    return found


async def test_a_stream_is_read_where_it_is_asked_for() -> None:
    """At its own gateway and at another one: the same bytes, also those of a large event."""
    call_id, large = call_of(3), b"x" * 10**6
    async with two_gateways() as (one, other):
        stream = one.keeper.open(call_id, "acme", 30.0)
        await stream.put(1, b"one")

        async def go_on() -> None:
            await stream.put(2, large)
            stream.end(3, b"result")

        async with asyncio.TaskGroup() as group:
            read = group.create_task(read_all(other, "acme", call_id, 1))
            group.create_task(go_on())
        assert read.result() == large + b"result"
        assert await read_all(one, "acme", call_id, 0) == b"one" + large + b"result"


@pytest.mark.parametrize(
    ("tenant", "epoch", "after", "code"),
    [
        ("globex", 3, 0, "unknown_call"),
        ("acme", 4, 0, "unknown_call"),
        ("acme", 9, 0, "unknown_call"),
        ("acme", 1, 0, "call_lost"),
        ("acme", 3, 7, "events_gone"),
    ],
)
async def test_what_cannot_be_read_is_said(tenant: str, epoch: int, after: int, code: str) -> None:
    """Another tenant's is as one that never was; a gateway that is gone has taken its own along."""
    async with two_gateways() as (one, other):
        ids = {3: call_of(3)}
        one.keeper.open(ids[3], "acme", 30.0)
        with pytest.raises(PilotlightError) as refused:
            await read_all(other, tenant, ids.get(epoch) or call_of(epoch), after)

    assert refused.value.wire_code == code


async def test_a_gateway_that_does_not_answer_may_be_asked_again() -> None:
    """It is there, and does not hear."""
    alone = gateway_of(HandlerBus(), GATEWAYS, "gw2")
    with pytest.raises(PilotlightError, match="does not answer") as refused:
        await read_all(alone, "acme", call_of(3), 0)
    assert refused.value.retry_after == 1.0


async def test_a_reader_elsewhere_keeps_it_going() -> None:
    """While it asks; when it asks no more the stream counts as left."""
    call_id = call_of(3)
    async with two_gateways() as (one, other):
        stream = one.keeper.open(call_id, "acme", 30.0)
        await stream.put(1, b"one")
        source = other.open("acme", call_id, 0)
        assert await source.read() == (b"one", False)
        assert source.resume_s == 30.0
        assert stream._left_at is not None
        stream.attach("another", 1)
        assert await source.read() == (b"", True), "it was taken over"
    with pytest.raises(UnknownCall):
        other.open("acme", call_of(1), 0)
