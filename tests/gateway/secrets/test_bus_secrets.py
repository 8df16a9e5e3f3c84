"""Secrets on the bus: what is told to gateways alone, and when a change is seen."""

from __future__ import annotations

from pilotlight_core.bus import Bus
from pilotlight_gateway.secrets.bus_secrets import BusSecrets
from tests.gateway.secrets.makers import secret
from tests.waiting import until


async def test_the_first_platform_key_stays_until_it_is_replaced_by_name(bus: Bus) -> None:
    """Gateways with another one notice."""
    store = BusSecrets(bus)
    assert await store.claim_platform_key("file:1", await store.platform_key()) == "file:1"
    assert await store.claim_platform_key("file:2", "") == "file:1"
    assert await store.claim_platform_key("file:2", "file:1") == "file:2"
    assert await BusSecrets(bus).platform_key() == "file:2"


async def test_another_gateway_hears_of_a_change(bus: Bus, other: Bus) -> None:
    """And of the end."""
    one, second = BusSecrets(bus), BusSecrets(other)
    async with one.running(), second.running():
        await one.change_secret("heard", "a", lambda _: secret("a", tenant="heard"))
        await until(lambda: second.secret_nowait("heard", "a") is not None)
        await one.change_secret("heard", "a", lambda _: None)
        await until(lambda: second.secrets("heard") == [])
