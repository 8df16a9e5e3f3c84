"""Reading streams: all, from a place, new ones, and following."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from pilotlight_core.bus import Bus, DecodedMessage
from pilotlight_core.bus.reader import SETTLE_S, read_last, until_next_read
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.logs import LogBatch, LogLine
from pilotlight_core.model.subjects import LOGS_STREAM, logs


def batch(text: str) -> LogBatch:
    return LogBatch(lines=(LogLine(at=0.0, stream="stdout", text=text, container="c"),))


def text(stored: DecodedMessage) -> str:
    line: str = stored.message.lines[0].text
    return line


async def test_everything_stored_is_read_once_and_in_order(bus: Bus, other: Bus) -> None:
    """Reading to the end gives what was stored, over page boundaries, and nothing of others."""
    tenant = token()
    subject = logs("local", "n1", tenant, "app", "fn")
    await bus.store(logs("local", "n1", f"{tenant}x", "app", "fn"), batch("other"), id="0")
    for number in range(600):
        await bus.store(subject, batch(str(number)), id=str(number))

    read = [stored async for stored in other.read_stream(LOGS_STREAM, subject)]

    assert [text(stored) for stored in read] == [str(number) for number in range(600)]
    assert [stored.seq for stored in read] == sorted({stored.seq for stored in read})
    assert read[0].subject == subject


async def test_a_repeated_id_is_stored_once(bus: Bus, other: Bus) -> None:
    """Storing again under the same id answers the first sequence; another subject's ids are its own."""
    one, two = logs("local", "n1", token(), "app", "fn"), logs("local", "n1", token(), "app", "fn")

    first = await bus.store(one, batch("a"), id="same")

    assert await bus.store(one, batch("b"), id="same") == first
    assert await bus.store(two, batch("c"), id="same") != first
    assert [text(stored) async for stored in other.read_stream(LOGS_STREAM, one)] == ["a"]


async def test_reading_starts_where_it_is_told(bus: Bus) -> None:
    """By sequence, or with what comes next."""
    subject = logs("local", "n1", token(), "app", "fn")
    numbers = [await bus.store(subject, batch(str(n)), id=str(n)) for n in range(5)]

    assert [text(s) async for s in bus.read_stream(LOGS_STREAM, subject, start=numbers[3])] == ["3", "4"]
    assert [text(s) async for s in bus.read_stream(LOGS_STREAM, subject, start="new")] == []
    with pytest.raises(ValueError, match="start="):
        await anext(aiter(bus.read_stream(LOGS_STREAM, subject, start="yesterday")))


async def test_following_goes_on_with_what_is_stored_later(bus: Bus, other: Bus) -> None:
    """A follower gets the old, then waits and gets the new soon after it is stored."""
    subject = logs("local", "n1", token(), "app", "fn")
    await bus.store(subject, batch("old"), id="old")

    reader = other.read_stream(LOGS_STREAM, subject, follow=True)
    async with asyncio.timeout(30):
        assert text(await anext(reader)) == "old"
        waiting = asyncio.ensure_future(anext(reader))
        await asyncio.sleep(0)
        await bus.store(subject, batch("new"), id="new")
        assert text(await waiting) == "new"
    await reader.aclose()


async def test_what_was_purged_is_not_read(bus: Bus) -> None:
    """Purging removes a subject's messages below a sequence, and no others."""
    subject, bystander = logs("local", "n1", token(), "app", "fn"), logs("local", "n1", token(), "app", "fn")
    await bus.store(bystander, batch("stays"), id="0")
    numbers = [await bus.store(subject, batch(str(n)), id=str(n)) for n in range(5)]

    assert await bus.purge_before(LOGS_STREAM, subject, numbers[3]) == 3

    assert [text(s) async for s in bus.read_stream(LOGS_STREAM, subject)] == ["3", "4"]
    assert [text(s) async for s in bus.read_stream(LOGS_STREAM, bystander)] == ["stays"]


@pytest.mark.parametrize(
    ("last", "follow", "expected"),
    [
        (None, False, ["a", "b", "d"]),
        (2, False, ["b", "d"]),
        (1, True, ["d", "e"]),  # nothing between the last ones and those that come is read twice or left out
        (0, True, ["e"]),
        (None, True, ["a", "b", "d", "e"]),
    ],
)
async def test_only_the_last_ones_are_found_and_then_what_comes(
    last: int | None, follow: bool, expected: list[str]
) -> None:
    """Of what is asked for: 3 is stored and nobody's."""

    async def read(start: str | int, *, follow: bool) -> AsyncGenerator[tuple[int, str | None], None]:
        there: list[tuple[int, str | None]] = [(1, "a"), (2, "b"), (3, None), (4, "d")]
        for seq, found in there + [(5, "e")] * follow:
            if start == "all" or seq >= int(start):
                yield seq, found

    assert [found async for found in read_last(read, "all", last, follow=follow)] == expected


@pytest.mark.parametrize("at", [0.0, 0.25, 7.1, 7.75, 1_000_000.123])
def test_those_who_read_as_often_read_at_the_same_instants(at: float) -> None:
    """Whenever they begin to wait; who wakes a moment early does not read again in that moment."""
    due = at + until_next_read(at, 1.0, 0.25)
    assert due % 1.0 == pytest.approx(0.75)
    assert SETTLE_S < due - at <= 1.0 + SETTLE_S
    assert until_next_read(due - 0.001, 1.0, 0.25) == pytest.approx(1.001)
