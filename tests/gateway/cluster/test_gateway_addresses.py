"""Gateways say where clients reach them, and know the address of each function's home."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.bus import Bus
from pilotlight_core.model.ids import token
from pilotlight_core.model.subjects import SHARDS
from pilotlight_gateway.cluster.gateway_addresses import LONGEST_URL, GatewayAddresses, is_address
from pilotlight_gateway.cluster.shard_ownership import ShardOwner
from pilotlight_gateway.cluster.shard_plan import GatewayMember
from pilotlight_gateway.cluster.shard_table import ShardTable
from tests.waiting import until

MINE, THEIRS, NOBODYS = 1, 2, 3


class Lease:
    epoch = 5

    def valid(self, at: float) -> bool:
        return True


def table_of(me: str, *names: str) -> ShardTable:
    """All gateways live; the first is the home of shard MINE, the second of THEIRS."""
    table = ShardTable(f"{me}-1", Lease())
    table.see_members(GatewayMember(name, f"{name}-1", number) for number, name in enumerate(names, 1))
    homes = dict(zip((MINE, THEIRS), names, strict=True))
    table.see_owners([ShardOwner(f"{homes[shard]}-1", 9) if shard in homes else None for shard in range(SHARDS)])
    return table


class Addresses:
    """With the table that they are told to."""

    def __init__(self, bus: Bus, table: ShardTable, region: str, name: str, url: str) -> None:
        self.table = table
        self._addresses = GatewayAddresses(bus, table, region=region, name=name, url=url)

    async def __aenter__(self) -> None:
        await self._addresses.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        await self._addresses.__aexit__(*error)


def addresses(bus: Bus, region: str, name: str, url: str) -> Addresses:
    return Addresses(bus, table_of(name, "one", "two"), region, name, url)


async def test_each_knows_where_the_others_are(bus: Bus, other: Bus) -> None:
    """Of a function whose home is here, or nowhere, there is nothing to say."""
    region = token(6)
    one, two = addresses(bus, region, "one", "http://one:8470"), addresses(other, region, "two", "https://two")
    async with one, two:
        await until(lambda: one.table.address_of_home(THEIRS) == b"https://two")
        await until(lambda: two.table.address_of_home(MINE) == b"http://one:8470")
        assert (
            one.table.address_of_home(MINE)
            == two.table.address_of_home(THEIRS)
            == one.table.address_of_home(NOBODYS)
            == b""
        )


async def test_an_address_may_change(bus: Bus, other: Bus) -> None:
    """As soon as the gateway has started again with another one; one without an address is not named."""
    region = token(6)
    one = addresses(bus, region, "one", "http://one")
    async with one:
        for url in ("http://two:1", "http://two:2", ""):
            async with addresses(other, region, "two", url):
                await until(lambda url=url: one.table.address_of_home(THEIRS) == url.encode())  # type: ignore[misc] # bound now


@pytest.mark.parametrize(
    ("url", "is_one"),
    [
        (b"http://gateway-2:8470", True),
        (b"https://x", True),
        (b"", False),
        (b"gateway-2:8470", False),
        (b"http://x\r\nset-cookie: a=b", False),
        (b"http://x y", False),
        (b"http://" + LONGEST_URL * b"x", False),
    ],
)
def test_what_is_no_address_gets_into_no_answer(url: bytes, is_one: bool) -> None:
    assert is_address(url) is is_one
