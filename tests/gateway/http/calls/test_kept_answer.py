"""A stream whose client goes and comes back: the call goes on, and nothing is lost or comes twice."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from pilotlight_core.model.errors import FunctionRaised, TooMuch
from pilotlight_core.model.streams.resuming import Resumable
from pilotlight_gateway.calls.call_port import ChunkEvent, StageEvent
from tests.gateway.http.asgi import Wire, ask
from tests.gateway.world import World, events_of, function, generator, packed
from tests.waiting import until

PATH = "/v1/functions/shop.g/calls"
CALL = "call_local_1_00000000000000000001"


def chunks(*values: object) -> list[ChunkEvent]:
    return [ChunkEvent(seq=number, data=data) for number, data in enumerate(packed(*values), 1)]


@pytest.fixture
def held(world: World) -> World:
    """One whose resumable stream has said two things, and waits."""
    world.deploy(function("g", generator(), resumable=Resumable(resume_s=30)))
    world.calls.events = [StageEvent(name="queued", ms=0.1), *chunks("a", "b")]
    world.calls.hold = asyncio.Event()
    return world


def start(world: World, wire: Wire, **headers: str) -> asyncio.Task[Wire]:
    """Ask for the stream."""
    told = {"authorization": f"Bearer {world.key}", "accept": "text/event-stream"} | headers
    return asyncio.create_task(ask(world.app, wire, "POST", PATH, **told))


def follow(world: World, wire: Wire, after: int) -> asyncio.Task[Wire]:
    """Come back for what is behind an event."""
    told = {"authorization": f"Bearer {world.key}", "last_event_id": str(after)}
    return asyncio.create_task(ask(world.app, wire, "GET", f"/v1/calls/{CALL}/events", **told))


def values_in(wire: Wire) -> list[Any]:
    """The chunks' values, and the name of what ended it."""
    told = events_of(wire.body.decode())
    return [data["value"] if name == "chunk" else name for name, data in told if name != "stage"]


async def test_a_client_that_stays_reads_all(held: World) -> None:
    """With numbers, and the seconds for which it might have gone."""
    assert held.calls.hold is not None
    held.calls.hold.set()
    wire = await start(held, Wire())

    assert values_in(wire) == ["a", "b", "result"]
    assert wire.headers["pilotlight-resume-s"] == "30"
    assert [line for line in wire.body.split(b"\n") if line.startswith(b"id:")] == [b"id: 1", b"id: 2", b"id: 3"]


async def test_the_call_goes_on_without_its_client(held: World) -> None:
    """Who comes back gets what follows, also after the end; who has all is told that nothing follows."""
    assert held.calls.hold is not None
    first = Wire()
    asking = start(held, first)
    await until(lambda: b'"b"' in first.body)
    first.gone.set()
    second = Wire()
    following = follow(held, second, 1)
    await until(lambda: b'"b"' in second.body)
    assert not held.calls.cancelled
    held.calls.hold.set()
    await following
    await asking

    assert values_in(second) == ["b", "result"]
    assert values_in(await follow(held, Wire(), 2)) == ["result"]
    assert (await follow(held, Wire(), 3)).status == 204
    assert len(held.services.gate) == 0


async def test_it_is_cancelled_when_nobody_comes_back(held: World) -> None:
    """Within the seconds that the request asked for; who comes too late hears why."""
    wire = Wire()
    asking = start(held, wire, pilotlight_resume_s="0.02")
    await until(lambda: b'"b"' in wire.body)
    wire.gone.set()
    await asking

    assert held.calls.cancelled == [CALL]


async def test_without_seconds_it_ends_with_its_connection(held: World) -> None:
    """As every stream that is not resumable."""
    wire = Wire()
    asking = start(held, wire, pilotlight_resume_s="0")
    await until(lambda: b'"b"' in wire.body)
    wire.gone.set()
    await asking

    assert held.calls.cancelled == [CALL]
    assert (await follow(held, Wire(), 1)).json["code"] == "unknown_call"


async def test_any_stream_may_ask_for_seconds(world: World) -> None:
    """The function need not be resumable: its container has to live, its client may go."""
    world.deploy(function("g", generator()))
    world.calls.events = chunks("a", "b")
    wire = await start(world, Wire(), pilotlight_resume_s="5")

    assert wire.headers["pilotlight-resume-s"] == "5"
    assert values_in(await follow(world, Wire(), 1)) == ["b", "result"]


@pytest.mark.parametrize("seconds", ["601", "-1", "soon", "nan"])
async def test_seconds_beyond_the_bounds_are_refused(held: World, seconds: str) -> None:
    """By the header's name."""
    wire = await start(held, Wire(), pilotlight_resume_s=seconds)

    assert (wire.status, wire.json["field"]) == (422, "Pilotlight-Resume-S")


async def test_what_fails_first_has_a_status_of_its_own(held: World) -> None:
    """As of any stream."""
    held.calls.events, held.calls.hold = [], None
    held.calls.error = TooMuch("Full.", code="queue_full", retry_after=3.0)
    wire = await start(held, Wire())

    assert (wire.status, wire.headers["retry-after"]) == (429, "3")
    assert (await follow(held, Wire(), 0)).json["code"] == "unknown_call"


async def test_how_it_failed_is_told_to_who_comes_back(held: World) -> None:
    """It is an event like others."""
    held.calls.error = FunctionRaised("ValueError: no", traceback="Traceback…")
    wire = Wire()
    asking = start(held, wire)
    await until(lambda: b'"b"' in wire.body)
    wire.gone.set()
    assert held.calls.hold is not None
    held.calls.hold.set()
    await asking

    assert values_in(await follow(held, Wire(), 1)) == ["b", "error"]


async def test_an_unexpected_error_is_told_without_details(held: World) -> None:
    """`internal`."""
    held.calls.error, held.calls.hold = ValueError("secret"), None
    wire = await start(held, Wire())

    assert values_in(wire) == ["a", "b", "error"]
    assert b"secret" not in wire.body


async def test_a_shutdown_ends_it_though_nobody_reads(held: World) -> None:
    """Its gateway does not wait for a client that may come back."""
    wire = Wire()
    asking = start(held, wire)
    await until(lambda: b'"b"' in wire.body)
    wire.gone.set()
    assert not await held.services.gate.drain(0.0)
    assert await held.services.gate.abort(1.0) == 1
    await asking

    assert held.calls.cancelled == [CALL]


async def test_it_counts_as_long_as_it_runs(held: World) -> None:
    """Its client's going does not free what its tenant may run at a time; and it ends with its key."""
    wire = Wire()
    asking = start(held, wire)
    await until(lambda: b'"b"' in wire.body)
    wire.gone.set()
    await asyncio.sleep(0)
    assert len(held.services.gate) == len(held.services.requests) == 1
    held.services.requests.end_revoked(lambda _: TooMuch("The budget is used up.", code="rate_limited"))
    await asking

    assert held.calls.cancelled == [CALL]
    assert values_in(await follow(held, Wire(), 2)) == ["error"]


@pytest.mark.parametrize("turns", range(8))
async def test_it_has_one_last_event(held: World, turns: int) -> None:
    """Also if it is ended at the very moment at which it ends."""
    wire = Wire()
    asking = start(held, wire)
    await until(lambda: b'"b"' in wire.body)
    wire.gone.set()
    assert held.calls.hold is not None
    held.calls.hold.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    held.services.requests.end_revoked(lambda _: TooMuch("The budget is used up.", code="rate_limited"))
    with suppress(TooMuch):  # its connection, which is gone
        await asking

    assert len(values_in(await follow(held, Wire(), 2))) == 1
