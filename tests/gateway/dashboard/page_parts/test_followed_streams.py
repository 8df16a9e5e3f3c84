"""Streams are followed for those who look: one for all, the last values of each, and no longer than somebody looks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import msgspec
import pytest

from pilotlight_gateway.dashboard.page_parts import followed_streams
from pilotlight_gateway.dashboard.page_parts.followed_streams import (
    AGAIN_S,
    KEPT_BYTES,
    KEPT_VALUES,
    LEFT_S,
    OF_AUDIENCE,
    OF_TENANT,
    UNREAD_S,
    FollowedStreams,
)
from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiProblem
from tests.gateway.world import Clock
from tests.waiting import until


class ScriptedStreams:
    """A `StreamSource` whose streams send what is put into them; an error refuses or breaks off, None ends."""

    def __init__(self) -> None:
        self.opened: list[tuple[str, str]] = []
        self.closed: list[str] = []
        self.sent: dict[str, asyncio.Queue[bytes | Exception | None]] = {}

    def put(self, path: str, *values: bytes | Exception | None) -> None:
        for value in values:
            self.sent.setdefault(path, asyncio.Queue()).put_nowait(value)

    async def events(self, path: str, token: str) -> AsyncGenerator[bytes]:
        self.opened.append((path, token))
        queue = self.sent.setdefault(path, asyncio.Queue())
        try:
            while (value := await queue.get()) is not None:
                if isinstance(value, Exception):
                    raise value
                yield value
        finally:
            self.closed.append(path)


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_streams, "QUIET_S", 0.005)
    monkeypatch.setattr(followed_streams, "EMPTY_S", 0.01)


async def test_viewers_who_are_told_the_same_share_a_stream() -> None:
    """What comes later is there at the next look; others have their own."""
    source = ScriptedStreams()
    source.put("/a", b"1", b"2", b"no json")
    async with FollowedStreams(source).running() as streams:
        first, second = await asyncio.gather(streams.read("acme", "/a", "t1"), streams.read("acme", "/a", "t2"))
        assert first == second == (1, 2)
        source.put("/a", b"3")
        await until(lambda: source.sent["/a"].empty())
        assert await streams.read("acme", "/a", "t2") == (1, 2, 3)
        assert source.opened == [("/a", "t1")]
        assert await streams.read("rival", "/a", "t3") == ()
        assert source.opened[1:] == [("/a", "t3")]
    assert len(streams) == 0
    assert source.closed == ["/a", "/a"]


async def test_of_each_the_last_ones_are_kept() -> None:
    """In number, and in bytes."""
    source = ScriptedStreams()
    source.put("/many", *(b"%d" % n for n in range(KEPT_VALUES + 5)))
    source.put("/large", *(msgspec.json.encode("x" * 10_000) for _ in range(100)))
    async with FollowedStreams(source).running() as streams:
        many = await streams.read("acme", "/many", "t")
        large = await streams.read("acme", "/large", "t")
    assert (len(many), many[-1]) == (KEPT_VALUES, KEPT_VALUES + 4)
    assert len(large) == KEPT_BYTES // 10_002


async def test_a_stream_that_nobody_reads_ends() -> None:
    """And one that was left gives way to another one of its audience; those that are looked at do not."""
    source, clock = ScriptedStreams(), Clock(0.0)
    async with FollowedStreams(source, clock).running() as streams:
        for number in range(OF_AUDIENCE):
            await streams.read("acme", f"/{number}", "t")
        with pytest.raises(ApiProblem, match="As many"):
            await streams.read("acme", "/more", "t")
        clock.at += LEFT_S
        for number in range(1, OF_AUDIENCE):
            await streams.read("acme", f"/{number}", "t")
        await streams.read("acme", "/more", "t")
        await until(lambda: source.closed == ["/0"])
        clock.at += UNREAD_S - 1.0
        await streams.read("acme", "/more", "t")
        clock.at += 2.0
        streams.end_unread()
        await until(lambda: set(source.closed) == {f"/{number}" for number in range(OF_AUDIENCE)})
        assert len(streams) == 1


async def test_a_refusal_is_said_and_asked_for_anew() -> None:
    """After a pause; a session that has ended takes no other's stream away; one that ends is begun again."""
    source, clock = ScriptedStreams(), Clock(0.0)
    source.put("/a", ApiProblem(429, "overloaded", "Too many."), b"1")
    async with FollowedStreams(source, clock).running() as streams:
        for _ in range(2):
            with pytest.raises(ApiProblem, match="Too many"):
                await streams.read("acme", "/a", "t")
        assert len(source.opened) == 1
        clock.at += AGAIN_S
        assert await streams.read("acme", "/a", "t") == (1,)
        source.put("/a", None)
        await until(lambda: len(source.closed) == 2)
        assert await streams.read("acme", "/a", "t") == (1,)
        source.put("/a", b"2")
        clock.at += AGAIN_S
        assert await streams.read("acme", "/a", "t") == (2,)
        source.put("/a", ApiProblem(401, "unauthorized", "It has ended."))
        await until(lambda: len(source.closed) == 3)
        source.put("/a", b"3")
        assert await streams.read("acme", "/a", "other") == (3,)


async def test_a_stream_that_fails_takes_no_other_with_it() -> None:
    """It is said, and the rest goes on."""
    source = ScriptedStreams()
    source.put("/a", ValueError("a fault"))
    source.put("/b", b"1")
    async with FollowedStreams(source).running() as streams:
        with pytest.raises(ApiProblem, match="could not be followed"):
            await streams.read("acme", "/a", "t")
        assert await streams.read("acme", "/b", "t") == (1,)


async def test_there_are_no_more_than_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """And none when nothing runs."""
    monkeypatch.setattr(followed_streams, "STREAMS", 1)
    streams = FollowedStreams(ScriptedStreams())
    with pytest.raises(ApiProblem, match="As many"):
        await streams.read("acme", "/a", "t")
    async with streams.running():
        await streams.read("acme", "/a", "t")
        with pytest.raises(ApiProblem, match="As many"):
            await streams.read("rival", "/a", "t")


async def test_what_no_reader_can_read_ends_no_stream() -> None:
    """Neither what is no text, nor what is nested without end."""
    source = ScriptedStreams()
    source.put("/a", b"1", b'"\xff"', b"[" * 100_000, b"2")
    async with FollowedStreams(source).running() as streams:
        assert await streams.read("acme", "/a", "t") == (1, 2)


async def test_one_tenant_leaves_streams_for_others() -> None:
    """However many kinds of keys it makes."""
    source = ScriptedStreams()
    async with FollowedStreams(source).running() as streams:
        for number in range(OF_TENANT):
            await streams.read(("acme", frozenset({str(number // OF_AUDIENCE)})), f"/{number}", "t")
        with pytest.raises(ApiProblem) as caught:
            await streams.read(("acme", frozenset({"more"})), "/more", "t")
        assert caught.value.status == 429
        assert await streams.read(("other", frozenset({"read"})), "/own", "t") == ()
