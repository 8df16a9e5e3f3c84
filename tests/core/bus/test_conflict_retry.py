"""Compare-and-set with retries after conflicts."""

from __future__ import annotations

import asyncio

import pytest

from pilotlight_core.bus import Bus, KeyConflict, KvEntry, NewValue, WrongRevision, retry_conflicts
from pilotlight_core.bus.streams import key_subject
from pilotlight_core.model.errors import Conflict, Unavailable
from pilotlight_core.model.ids import token
from pilotlight_core.model.subjects import REGISTRY_BUCKET


class Attempt:
    """Raises the given errors, once each, then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


async def test_lost_tries_are_made_again() -> None:
    """Until one is not lost."""
    attempt = Attempt(WrongRevision(), KeyConflict())

    assert await retry_conflicts(attempt) == "done"
    assert attempt.calls == 3


async def test_it_gives_up_after_so_many_tries() -> None:
    """It raises the last conflict, or the given error in its place."""
    attempt = Attempt(KeyConflict("one"), KeyConflict("two"), KeyConflict("three"))
    with pytest.raises(KeyConflict, match="two"):
        await retry_conflicts(attempt, tries=2)

    with pytest.raises(Unavailable, match="busy"):
        await retry_conflicts(Attempt(KeyConflict()), tries=1, failed=Unavailable("busy"))


async def test_what_is_no_conflict_is_raised_at_once() -> None:
    """The caller chooses which exception counts as a conflict."""
    attempt = Attempt(Conflict("the app was changed"))
    with pytest.raises(Conflict, match="the app"):
        await retry_conflicts(attempt)
    assert attempt.calls == 1

    assert await retry_conflicts(Attempt(Conflict()), conflict=Conflict) == "done"


def one_more(value: bytes | None) -> NewValue:
    return NewValue(b"%d" % (int(value or b"0") + 1))


async def test_no_change_is_lost(bus: Bus, other: Bus) -> None:
    """Of a number that many count up at once, over two connections."""
    key = f"x.{token()}"

    await asyncio.gather(*(side.kv(REGISTRY_BUCKET).change(key, one_more) for side in (bus, other) for _ in range(4)))

    entry = await bus.kv(REGISTRY_BUCKET).get(key)
    assert entry is not None
    assert entry.value == b"8"


async def test_a_change_creates_leaves_and_removes(bus: Bus) -> None:
    """What was removed is as if it had never been."""
    kv, key = bus.kv(REGISTRY_BUCKET), f"x.{token()}"
    seen: list[bytes | None] = []

    async def become(new: NewValue | None) -> KvEntry | None:
        def change(value: bytes | None) -> NewValue | None:
            seen.append(value)
            return new

        await kv.change(key, change)
        return await kv.get(key)

    created = await become(NewValue(b"1"))
    assert created is not None
    assert created.value == b"1"
    assert await become(None) == created
    assert await become(NewValue(None)) is None
    again = await become(NewValue(b"2"))
    assert again is not None
    assert again.revision > created.revision
    assert seen == [None, b"1", b"1", None]


async def test_a_change_that_others_are_always_ahead_of_is_given_up(bus: Bus) -> None:
    """After so many tries, each with what stood there then."""
    key, seen = f"x.{token()}", list[bytes | None]()

    def change(value: bytes | None) -> NewValue:
        seen.append(value)
        bus._client.publish_nowait(key_subject(REGISTRY_BUCKET, key), b"%d" % len(seen), "")
        return NewValue(b"ours")

    with pytest.raises(KeyConflict, match="again and again"):
        await bus.kv(REGISTRY_BUCKET).change(key, change, tries=3)
    assert seen == [None, b"1", b"2"]
