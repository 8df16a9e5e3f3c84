"""When an issuer's keys are fetched: seldom, whoever sends what, and never less than is needed."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from pilotlight_core.model.errors import Unavailable
from pilotlight_gateway.oidc.issuer_keys import (
    CHECK_EVERY_S,
    FRESH_FOR_S,
    IN_USE_S,
    RETRY_S,
    UNKNOWN_KEY_S,
    WAITING_AT_MOST,
    IssuerKeys,
    KnownKeys,
)
from pilotlight_gateway.oidc.jwks_source import IssuerSilent, MemoryJwksSource
from tests.gateway.oidc.token_maker import JWKS_URL, RECORD, TokenMaker
from tests.gateway.world import Clock
from tests.waiting import until

MAKER, NEXT = TokenMaker(), TokenMaker(name="key-2")


class Kept:
    """Keys of one issuer, a clock, and what was asked."""

    def __init__(self) -> None:
        self.clock, self.records = Clock(100.0), [RECORD]
        self.source = MemoryJwksSource(documents={JWKS_URL: MAKER.jwks()})
        self.keys = IssuerKeys(self.source, lambda: self.records, clock=self.clock)

    async def find(self, name: str = "key-1") -> int:
        return len(await self.keys.find(self.records[0], "ES256", name))

    @property
    def fetched(self) -> int:
        return len(self.source.asked)


async def test_they_are_fetched_once() -> None:
    """With the first token, however many come at once."""
    kept = Kept()
    async with kept.keys.running():
        assert kept.fetched == 0
        assert await asyncio.gather(*(kept.find() for _ in range(50))) == [1] * 50
        kept.clock.at += FRESH_FOR_S - 1
        assert await kept.find() == 1
    assert kept.fetched == 1


async def test_old_ones_are_fetched_beside_the_requests() -> None:
    """Which go by the old ones meanwhile; nobody's keys are fetched for ever."""
    kept = Kept()
    async with kept.keys.running():
        await kept.find()
        kept.source.documents[JWKS_URL] = MAKER.jwks(NEXT.jwk())
        kept.clock.at += FRESH_FOR_S
        assert await kept.find() == 1
        kept.keys.wake()
        await until(lambda: kept.fetched == 2)
        await until(lambda: len(kept.keys.known(RECORD).keys) == 2)
        assert await kept.find("key-2") == 1
    unused = KnownKeys(url=JWKS_URL, fetched_at=0.0, tried_at=0.0, asked_at=0.0)
    assert unused.is_due(FRESH_FOR_S)
    assert not unused.is_due(IN_USE_S)
    assert CHECK_EVERY_S < RETRY_S


async def test_a_silent_issuer_is_gone_by_for_a_while() -> None:
    """Until its keys are too old, and then its tokens are refused with a reason; it is asked again all the time."""
    kept = Kept()
    async with kept.keys.running():
        await kept.find()
        kept.source.silent = "the line is cut"
        kept.clock.at += RECORD.stale_ok_s - 1
        assert await kept.find() == 1
        kept.keys.wake()
        await until(lambda: bool(kept.keys.known(RECORD).problem))
        assert await kept.find() == 1
        kept.clock.at += RETRY_S
        with pytest.raises(Unavailable, match="the line is cut") as caught:
            await kept.find()
        assert (caught.value.wire_code, caught.value.retry_after) == ("issuer_unavailable", RETRY_S)
        kept.source.silent = ""
        with pytest.raises(Unavailable):
            await kept.find()
        kept.clock.at += RETRY_S
        assert await kept.find() == 1


async def test_withdrawn_keys_count_no_more() -> None:
    """Also after hours in which nobody has sent a token: the issuer is asked before its old keys are gone by."""
    kept = Kept()
    async with kept.keys.running():
        await kept.find()
        kept.source.documents[JWKS_URL] = NEXT.jwks()
        kept.clock.at += IN_USE_S
        assert await asyncio.gather(*(kept.find() for _ in range(20))) == [0] * 20
        assert (await kept.find("key-2"), kept.fetched) == (1, 2)


async def test_a_crowd_goes_by_the_old_keys_of_a_silent_issuer() -> None:
    """Nobody is refused because too many wait for what need not be had, and once it is silent nobody waits."""
    kept, go_on = Kept(), asyncio.Event()
    async with kept.keys.running():
        await kept.find()

        async def hang(url: str) -> bytes:
            await go_on.wait()
            raise IssuerSilent("gone")

        kept.source.fetch = hang  # type: ignore[method-assign]
        kept.clock.at += IN_USE_S
        waiting = [asyncio.ensure_future(kept.find()) for _ in range(WAITING_AT_MOST)]
        await asyncio.sleep(0)
        assert await kept.find() == 1
        go_on.set()
        assert await asyncio.gather(*waiting) == [1] * WAITING_AT_MOST
        go_on.clear()
        kept.clock.at += RETRY_S
        assert await kept.find() == 1
        go_on.set()


async def test_strange_names_fetch_little() -> None:
    """A new key is found at once; names that are guessed bring one fetch in half a minute, however many they are."""
    kept = Kept()
    async with kept.keys.running():
        await kept.find()
        kept.clock.at += UNKNOWN_KEY_S
        kept.source.documents[JWKS_URL] = MAKER.jwks(NEXT.jwk())
        assert await asyncio.gather(*(kept.find("key-2") for _ in range(20))) == [1] * 20
        assert kept.fetched == 2
        for number in range(200):
            assert await kept.find(f"guess-{number}") == 0
        assert kept.fetched == 2
        kept.clock.at += UNKNOWN_KEY_S
        assert await kept.find("guess") == 0
        assert kept.fetched == 3


async def test_who_goes_takes_no_fetch_along() -> None:
    """Or whoever hangs up in time could keep a new key from everybody."""
    kept, begun, go_on = Kept(), asyncio.Event(), asyncio.Event()

    class Slow(MemoryJwksSource):
        async def fetch(self, url: str) -> bytes:
            begun.set()
            await go_on.wait()
            return await super().fetch(url)

    source = Slow(documents=kept.source.documents)
    keys = IssuerKeys(source, lambda: kept.records, clock=kept.clock)
    async with keys.running():
        gone = asyncio.ensure_future(keys.find(RECORD, "ES256", "key-1"))
        await begun.wait()
        gone.cancel()
        stays = asyncio.ensure_future(keys.find(RECORD, "ES256", "key-1"))
        go_on.set()
        assert len(await stays) == 1
    assert source.asked == [JWKS_URL]


async def test_waiting_is_bounded() -> None:
    """Beyond that a request is refused at once: an issuer that hangs holds no crowd."""
    kept, go_on = Kept(), asyncio.Event()

    class Hanging(MemoryJwksSource):
        async def fetch(self, url: str) -> bytes:
            await go_on.wait()
            return await super().fetch(url)

    keys = IssuerKeys(Hanging(documents=kept.source.documents), lambda: kept.records, clock=kept.clock)
    async with keys.running():
        waiting = [asyncio.ensure_future(keys.find(RECORD, "ES256", "key-1")) for _ in range(WAITING_AT_MOST)]
        await asyncio.sleep(0)
        with pytest.raises(Unavailable):
            await keys.find(RECORD, "ES256", "key-1")
        go_on.set()
        assert [len(found) for found in await asyncio.gather(*waiting)] == [1] * WAITING_AT_MOST


@pytest.mark.parametrize("document", [b"", b"{}", b'{"keys":7}', b" " * 10])
async def test_what_is_no_set_of_keys_changes_nothing(document: bytes) -> None:
    """What was there stays, and the problem is told."""
    kept = Kept()
    async with kept.keys.running():
        await kept.find()
        kept.source.documents[JWKS_URL] = document
        kept.clock.at += UNKNOWN_KEY_S
        assert await kept.find("key-2") == 0
        assert await kept.find() == 1
        assert JWKS_URL in kept.keys.known(RECORD).problem


async def test_keys_are_of_the_record() -> None:
    """Another address, other keys; without a record there are none."""
    kept = Kept()
    moved = replace(RECORD, jwks_url="https://login.example.com/other")
    kept.source.documents[moved.jwks_url] = NEXT.jwks()
    async with kept.keys.running():
        await kept.find()
        kept.records = [moved]
        assert (await kept.find("key-1"), await kept.find("key-2")) == (0, 1)
        kept.records = []
        kept.keys.wake()
        await until(lambda: not kept.keys.known(moved).keys)


async def test_a_record_that_moves_while_it_is_fetched() -> None:
    """Its tokens wait for the new address's keys, and what the old one answers at last is of nobody."""
    kept, go_on = Kept(), asyncio.Event()
    moved = replace(RECORD, jwks_url="https://login.example.com/other")

    class Slow(MemoryJwksSource):
        async def fetch(self, url: str) -> bytes:
            if url == JWKS_URL:
                await go_on.wait()
            return await super().fetch(url)

    keys = IssuerKeys(
        Slow(documents={JWKS_URL: MAKER.jwks(), moved.jwks_url: NEXT.jwks()}), lambda: kept.records, clock=kept.clock
    )
    async with keys.running():
        before = asyncio.ensure_future(keys.find(RECORD, "ES256", "key-1"))
        await asyncio.sleep(0)
        kept.records = [moved]
        assert len(await keys.find(moved, "ES256", "key-2")) == 1
        go_on.set()
        with pytest.raises(Unavailable):
            await before
        assert [key.name for key in keys.known(moved).keys] == ["key-2"]


async def test_nothing_that_an_issuer_does_ends_the_gateway() -> None:
    """Whatever goes wrong with a fetch, it is a problem of that issuer's."""
    kept = Kept()

    class Broken(MemoryJwksSource):
        async def fetch(self, url: str) -> bytes:
            raise ZeroDivisionError("odd")

    keys = IssuerKeys(Broken(), lambda: kept.records, clock=kept.clock)
    async with keys.running():
        with pytest.raises(Unavailable, match="odd"):
            await keys.find(RECORD, "ES256", "key-1")
