"""Live calls by who waits: each is told once, and a stream gives back what it held."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pilotlight_core.model.errors import ContainerDied, PilotlightError, Unavailable
from pilotlight_core.model.messages.scheduling import Enqueue, Withdraw
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.live_calls import AwaitedCall, CallStream, WaitedCall
from pilotlight_gateway.calls.origin import Origin
from tests.builders.calls import prepared_call
from tests.gateway.calls.test_origins import Site

RESULT = CallResult(output=b"42")


class Waiter:
    def __init__(self) -> None:
        self.told: list[CallResult | PilotlightError] = []

    def finished(self, result: CallResult) -> None:
        self.told.append(result)

    def failed(self, error: PilotlightError) -> None:
        self.told.append(error)


def waited(site: Site) -> tuple[WaitedCall, Waiter]:
    """A call that has begun, and who waits for it."""
    call, waiter = prepared_call(), Waiter()
    live = WaitedCall(call, 0, Origin(call, "gw1", site.port.at), site.origins, waiter)
    site.origins.begin(live)
    return live, waiter


def awaited(site: Site, budget: ByteBudget) -> AwaitedCall:
    """A stream that has begun."""
    call = prepared_call(stream=True)
    answer: asyncio.Future[CallResult] = asyncio.get_running_loop().create_future()
    live = AwaitedCall(call, 0, Origin(call, "gw1", site.port.at), answer, budget)
    site.origins.begin(live)
    return live


@pytest.mark.parametrize("says", [lambda live: live.finish(RESULT), lambda live: live.fail(ContainerDied("gone"))])
def test_a_waiter_is_told_once(says: Any) -> None:
    """Whatever comes later."""
    live, waiter = waited(Site())
    says(live)
    live.finish(RESULT)
    live.fail(ContainerDied("again"))
    assert len(waiter.told) == 1


def test_who_waits_no_more_is_told_nothing_and_the_call_is_cancelled() -> None:
    """Its home is told."""
    site = Site()
    live, waiter = waited(site)
    live.end()
    live.finish(RESULT)
    assert waiter.told == []
    assert [type(item) for item in site.said()] == [Enqueue, Withdraw]
    assert not len(site.origins)


async def test_a_stream_counts_as_read_when_more_is_asked_for() -> None:
    """And ends with its call's result."""
    site, budget = Site(), ByteBudget(limit=100)
    live = awaited(site, budget)
    stream = CallStream(live, site.origins)
    await anext(stream)  # its first stage
    live.relay_chunks(1, (b"abc",))
    assert [type(event).__name__ for event in await anext(stream)] == ["ChunkEvent"]
    assert budget.used == 3
    live.finish(RESULT)
    assert await anext(stream) == [RESULT]
    assert budget.used == 0
    assert [bunch async for bunch in stream] == []
    assert not len(site.origins)


async def test_a_stream_that_is_closed_twice_ends_its_call_once() -> None:
    """What it held is given back, and its home is told."""
    site, budget = Site(), ByteBudget(limit=100)
    live = awaited(site, budget)
    stream = CallStream(live, site.origins)
    live.relay_chunks(1, (b"abc",))
    await stream.aclose()
    await stream.aclose()
    assert budget.used == 0
    assert [type(item) for item in site.said()] == [Enqueue, Withdraw]
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_a_streams_error_is_raised_and_ends_it() -> None:
    """The call is known no more than as one that failed."""
    site = Site()
    live = awaited(site, ByteBudget(limit=100))
    stream = CallStream(live, site.origins)
    await anext(stream)
    live.fail(ContainerDied("gone"))
    with pytest.raises(ContainerDied):
        await anext(stream)
    assert not len(site.origins)


async def test_a_journal_is_counted_beside_the_chunks() -> None:
    """More and less of it; what there is no memory for is refused, and what was held stays."""
    budget = ByteBudget(limit=100)
    live = awaited(Site(), budget)
    live.relay_chunks(1, (b"x" * 10,))
    live.hold_journal(40)
    live.hold_journal(30)
    assert budget.used == 40
    with pytest.raises(Unavailable):
        live.hold_journal(60)
    assert (budget.used, live.journal_bytes) == (40, 30)
    live.release()
    assert budget.used == 0


async def test_what_one_stage_gives_to_the_next_counts_in_the_budget() -> None:
    """Until the next value takes its place, or the call ends; what has no room is refused, and the rest still held."""
    budget = ByteBudget(limit=1_000)
    live = awaited(Site(), budget)
    live.hold_value(60)
    with pytest.raises(Unavailable):
        live.hold_value(2_000)
    assert (live.value_bytes, budget.used) == (60, 60)
    live.hold_value(10)
    assert budget.used == 10
    live.release()
    assert budget.used == 0


class Taker:
    """Takes chunks, if it `does`."""

    def __init__(self) -> None:
        self.does = True
        self.taken: list[int] = []

    def take(self, seq: int, data: tuple[bytes, ...]) -> bool:
        if self.does:
            self.taken.append(seq)
        return self.does


async def test_chunks_are_taken_while_their_reader_waits_for_more() -> None:
    """Not before it has read what is there, nor once it is told of something, nor by somebody who does not."""
    site, taker = Site(), Taker()
    live = awaited(site, ByteBudget(limit=100))
    stream = CallStream(live, site.origins)
    assert not live.take_chunks(1, (b"x",))
    live.taker = taker
    assert not live.take_chunks(1, (b"x",))
    await anext(stream)  # its first stage
    assert not live.take_chunks(1, (b"x",))
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    assert live.take_chunks(1, (b"x",))
    taker.does = False
    assert not live.take_chunks(2, (b"y",))
    live.relay_chunks(2, (b"y",))
    taker.does = True
    assert not live.take_chunks(3, (b"z",))
    assert [type(event).__name__ for event in await waiting] == ["ChunkEvent"]
    assert taker.taken == [1]
    await stream.aclose()
