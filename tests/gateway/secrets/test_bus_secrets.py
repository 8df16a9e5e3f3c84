"""Secrets on the bus: what is told to gateways alone, and when a change is seen."""

from __future__ import annotations

from pilotlight_core.bus import Bus
from pilotlight_core.model.subjects import SECRET_BUCKET
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


async def test_a_list_has_what_was_just_stored(bus: Bus) -> None:
    """By whichever gateway, whether it has heard of it or not; and nothing of another tenant, or that was removed."""
    store = BusSecrets(bus)
    for tenant, name in (("listed", "a"), ("listed", "b"), ("listed", "gone"), ("listed-too", "c")):
        await bus.kv(SECRET_BUCKET).put(f"secret.{tenant}.{name}", b"any")
    await bus.kv(SECRET_BUCKET).delete("secret.listed.gone")

    assert await store.names("listed", "b") == {"a", "b"}


async def test_another_gateway_hears_of_a_change(bus: Bus, other: Bus) -> None:
    """And of the end."""
    one, second = BusSecrets(bus), BusSecrets(other)
    async with one.running(), second.running():
        await one.change_secret("heard", "a", lambda _: secret("a", tenant="heard"))
        await until(lambda: second.secret_nowait("heard", "a") is not None)
        await one.change_secret("heard", "a", lambda _: None)
        await until(lambda: second.secrets("heard") == [])
