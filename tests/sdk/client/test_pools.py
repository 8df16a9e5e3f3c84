"""Requests are spread over small pools, as many as are needed."""

from __future__ import annotations

from contextlib import ExitStack

from pilotlight.client.pools import POOLS_AT_MOST, SIZE, Pools


class Client:
    """Counts what is under way in it."""

    def __init__(self) -> None:
        self.closed = False

    async def aclose(self) -> None:
        self.closed = True


class Site:
    """Pools, those that were made, and their clock."""

    def __init__(self) -> None:
        self.at = 0.0
        self.made: list[Client] = []
        self.pools = Pools(self.make, idle_s=3.0, clock=lambda: self.at)

    def make(self) -> Client:
        self.made.append(Client())
        return self.made[-1]


def test_no_pool_has_more_than_a_few_connections() -> None:
    """The first with room takes the next; beyond the last pool they share."""
    site = Site()
    with ExitStack() as stack:
        used = [stack.enter_context(site.pools.one()) for _ in range(SIZE * POOLS_AT_MOST)]
        assert [used.count(client) for client in site.made] == [SIZE] * POOLS_AT_MOST
        beyond = {stack.enter_context(site.pools.one()) for _ in range(POOLS_AT_MOST)}
        assert beyond == set(site.made)
    with site.pools.one() as client:
        assert client is site.made[0]


async def test_a_pool_that_is_not_needed_is_closed() -> None:
    """After a while; the first one stays, and so does what is in use."""
    site = Site()
    with ExitStack() as stack:
        for _ in range(3 * SIZE):
            stack.enter_context(site.pools.one())
        site.at = 10.0
        await site.pools.tidy()
        assert len(site.pools) == 3
    site.at = 12.9
    await site.pools.tidy()
    assert len(site.pools) == 3
    site.at = 13.0
    await site.pools.tidy()
    assert [client.closed for client in site.made] == [False, True, True]
    await site.pools.aclose()
    assert (site.made[0].closed, len(site.pools)) == (True, 0)


async def test_what_fails_is_not_under_way_any_more() -> None:
    """Its place is free again."""
    site = Site()
    for _ in range(2 * SIZE):
        try:
            with site.pools.one():
                raise ValueError
        except ValueError:
            pass
    assert len(site.made) == 1
