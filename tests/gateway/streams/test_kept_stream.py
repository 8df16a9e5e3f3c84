"""Events that are kept for a reader who goes and comes back."""

from __future__ import annotations

import asyncio

import pytest

from pilotlight_core.model.errors import NotFound
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.streams import kept_stream
from pilotlight_gateway.streams.kept_stream import UNREAD_EVENTS, KeptStream


class Clock:
    """Monotonic seconds that are set."""

    at = 100.0

    def __call__(self) -> float:
        return self.at


def stream_of(budget: ByteBudget | None = None, *, resume_s: float = 30.0, clock: Clock | None = None) -> KeptStream:
    return KeptStream(
        "call_1", "acme", resume_s, budget=budget or ByteBudget(limit=10**6), make_room=lambda _: False,
        clock=clock or Clock(),
    )  # fmt: skip


async def read_all(stream: KeptStream, reader: str, after: int, most: int = 10**6) -> bytes:
    """What there is behind an event, in pieces of at most so many bytes."""
    cursor, found = stream.attach(reader, after), b""
    while True:
        data, cursor, is_over = await stream.read(reader, cursor, most, within_s=0.0)
        found += data
        if is_over or not data:
            return found


@pytest.mark.parametrize("most", [1, 2, 3, 100])
async def test_it_is_read_on_behind_any_event(most: int) -> None:
    """Byte by byte or at once: nothing twice, and stages with the event before them."""
    stream = stream_of()
    for number, data in ((0, b"(stage)"), (1, b"one"), (2, b"two"), (2, b"(moving)"), (3, b"three")):
        await stream.put(number, data)
    stream.end(4, b"result")

    assert await read_all(stream, "a", 0, most) == b"onetwo(moving)threeresult"
    assert await read_all(stream, "b", 2, most) == b"threeresult"
    assert await read_all(stream, "c", 4, most) == b""


async def test_the_first_reader_hears_of_stages() -> None:
    """It reads from the first place, before any event."""
    stream = stream_of()
    cursor = stream.attach("a", 0)
    await stream.put(0, b"(stage)")
    await stream.put(1, b"one")

    assert (await stream.read("a", cursor, 100)).data == b"(stage)one"


async def test_a_new_reader_takes_it_over() -> None:
    """The other one, which waits, is told that it is over."""
    stream = stream_of()
    cursor = stream.attach("a", 0)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(stream.read("a", cursor, 100))
        await asyncio.sleep(0)
        stream.attach("b", 0)

    assert waiting.result().is_over


async def test_the_call_waits_for_its_reader() -> None:
    """While much is unread, also when nobody is there."""
    stream = stream_of()
    for number in range(1, UNREAD_EVENTS + 1):
        await stream.put(number, b"x")
    async with asyncio.TaskGroup() as group:
        late = group.create_task(stream.put(UNREAD_EVENTS + 1, b"y"))
        await asyncio.sleep(0)
        assert not late.done()
        cursor = stream.attach("a", 0)
        found = await stream.read("a", cursor, 10)
        await stream.read("a", found.cursor, 10)  # only then it counts as read

    assert stream.last_number == UNREAD_EVENTS + 1


async def test_what_was_read_goes_when_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for it again is told so, and where the rest begins."""
    monkeypatch.setattr(kept_stream, "KEPT_BYTES", 2)
    budget = ByteBudget(limit=1_000)
    stream = stream_of(budget)
    for number in range(1, 6):
        await stream.put(number, b"x")
    assert await read_all(stream, "a", 0) == b"xxxxx"

    with pytest.raises(NotFound, match="behind 2 are not kept any more, only those behind 3") as gone:
        stream.attach("b", 2)
    assert gone.value.wire_code == "events_gone"
    assert await read_all(stream, "b", 3) == b"xx"
    assert budget.used == 2
    with pytest.raises(NotFound, match="no event 6 yet: the last one is 5"):
        stream.attach("c", 6)
    stream.discard()
    assert budget.used == 0


async def test_without_memory_the_reader_gets_what_it_waits_for() -> None:
    """One event at a time: it never waits for memory."""
    budget = ByteBudget(limit=1)
    stream = stream_of(budget)
    cursor = stream.attach("a", 0)
    for number in range(1, 4):
        await stream.put(number, b"long")
        data, cursor, _ = await stream.read("a", cursor, 100)
        assert data == b"long"
        await stream.read("a", cursor, 100, within_s=0.0)

    assert budget.used == 0
    stream.end(4, b"result")
    assert not stream.is_whole


async def test_it_is_given_up_when_nobody_has_read_for_long() -> None:
    """The time begins anew whenever a reader leaves."""
    clock = Clock()
    stream = stream_of(resume_s=5.0, clock=clock)
    stream.attach("a", 0)
    async with asyncio.TaskGroup() as group:
        abandoned = group.create_task(stream.wait_abandoned())
        await asyncio.sleep(0)
        stream.leave("a")
        clock.at += 4.0
        stream.attach("b", 0)
        await asyncio.sleep(0)
        stream.leave("a")  # which has left before
        clock.at += 60.0
        await asyncio.sleep(0)
        assert not abandoned.done()
        stream.leave("b")
        clock.at += 5.0
        stream.leave("b")
        stream.attach("c", 0)
        stream.leave("c")
        clock.at += 5.0
        stream._notify()
        await abandoned
