"""The streams of a gateway that can be read again."""

from __future__ import annotations

import time

import pytest

from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.streams import stream_keeper
from pilotlight_gateway.streams.stream_keeper import StreamKeeper
from tests.waiting import until


def keeper_of(limit: int = 1_000) -> StreamKeeper:
    return StreamKeeper(time.monotonic, ByteBudget(limit=limit))


async def ended(keeper: StreamKeeper, call_id: str, tenant: str, data: bytes, resume_s: float = 60.0) -> None:
    """A stream that has ended."""
    stream = keeper.open(call_id, tenant, resume_s)
    await stream.put(1, data)
    stream.end(2, b"")
    keeper.close(stream)


async def test_a_tenant_finds_its_own() -> None:
    """And nobody else's."""
    keeper = keeper_of()
    await ended(keeper, "a", "acme", b"x")

    assert keeper.find("acme", "a") is not None
    assert keeper.find("globex", "a") is None
    assert keeper.find("acme", "b") is None


async def test_what_has_ended_is_forgotten_in_time() -> None:
    """With its memory; and one that failed before it began is forgotten at once."""
    keeper = keeper_of()
    await ended(keeper, "a", "acme", b"x", resume_s=0.01)
    keeper.close(keeper.open("b", "acme", 60.0))
    await until(lambda: not len(keeper))

    assert keeper.budget.used == 0


async def test_ended_ones_make_room_for_those_that_run() -> None:
    """The oldest of the same tenant first; others keep theirs."""
    keeper = keeper_of(100)
    for call_id, tenant in (("a", "acme"), ("g", "globex"), ("b", "acme")):
        await ended(keeper, call_id, tenant, b"x" * 20)
    running = keeper.open("c", "acme", 60.0)
    await running.put(1, b"x" * 30)

    assert keeper.find("acme", "a") is None
    assert keeper.find("acme", "b") is not None
    assert keeper.find("globex", "g") is not None


async def test_there_are_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little each of them holds."""
    monkeypatch.setattr(stream_keeper, "MOST_ENDED", 2)
    keeper = keeper_of()
    for number in range(5):
        await ended(keeper, str(number), "acme", b"x")

    assert len(keeper) == 2


async def test_what_no_memory_was_counted_for_is_not_kept() -> None:
    """An answer that was too large for it."""
    keeper = keeper_of(10)
    await ended(keeper, "a", "acme", b"x" * 20)

    assert keeper.find("acme", "a") is None
