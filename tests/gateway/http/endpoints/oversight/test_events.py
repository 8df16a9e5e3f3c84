"""Events over HTTP."""

from __future__ import annotations

import time
from typing import Any

from pilotlight_core.bus import DecodedMessage
from pilotlight_core.model.messages.logs import EventKind, PlatformEvent
from tests.gateway.world import World, events_of


def tell(world: World, tenant: str, kind: EventKind = EventKind.SCALED, **more: Any) -> None:
    seq, at = 10 + len(world.services.events.kept), more.pop("at", time.time())
    event = PlatformEvent(at=at, kind=kind, tenant=tenant, says=f"event {seq}", **more)
    world.services.events.kept.append(DecodedMessage(seq=seq, subject="events", message=event, at=at))


async def test_a_tenant_sees_its_own_and_an_operator_all(world: World) -> None:
    """With the names of others, which a tenant is not told."""
    tell(world, "acme", EventKind.SLOWED, operator={"neighbour": "beta"})
    tell(world, "beta")
    tell(world, "", EventKind.NODE_LOST)
    async with world.client() as client:
        own = (await client.get("/v1/events")).json()["events"]
        others = [await client.get(f"/v1/events?{asked}") for asked in ("tenant=beta", "all=true")]
    async with world.client(world.operator) as client:
        every = (await client.get("/v1/events?all=true")).json()["events"]

    assert [(one["id"], one["facts"]) for one in own] == [(10, {})]
    assert [answer.status_code for answer in others] == [403, 403]
    assert [one["id"] for one in every] == [10, 11, 12]
    assert every[0]["facts"] == {"neighbour": "beta"}


async def test_they_are_asked_by_kind_time_and_place(world: World) -> None:
    tell(world, "acme", at=time.time() - 8 * 86_400.0)
    tell(world, "acme", EventKind.BREAKER_OPENED, function="acme:shop.sell")
    tell(world, "acme", function="acme:shop.buy")
    asked = ("", "since=9d", "kind=breaker", "function=shop.buy", "limit=1", "after=11", "after=9&limit=1")
    async with world.client() as client:
        answers = {each: (await client.get(f"/v1/events?{each}")).json()["events"] for each in asked}

    assert {each: [one["id"] for one in found] for each, found in answers.items()} == {
        "": [11, 12], "since=9d": [10, 11, 12], "kind=breaker": [11], "function=shop.buy": [12], "limit=1": [12],
        "after=11": [12], "after=9&limit=1": [10],
    }  # fmt: skip


async def test_as_they_come_they_have_ids_behind_which_a_client_goes_on(world: World) -> None:
    tell(world, "acme")
    tell(world, "acme")
    async with world.client() as client:
        headers = {"Accept": "text/event-stream"}
        first = await client.get("/v1/events", headers=headers)
        more = await client.get("/v1/events", headers=headers | {"Last-Event-ID": "10"})

    assert first.headers["content-type"].startswith("text/event-stream")
    assert [name for name, _ in events_of(first.text)] == ["function.scaled"] * 2
    assert "id: 11" in more.text
    assert "id: 10" not in more.text


async def test_nonsense_is_refused_by_name(world: World) -> None:
    async with world.client() as client:
        refused = [
            await client.get(f"/v1/events?{asked}")
            for asked in ("since=soon", "limit=0", "after=x", "after=", "all=x", "function=")
        ]

    assert [(answer.status_code, answer.json()["field"]) for answer in refused] == [
        (422, "since"), (422, "limit"), (422, "after"), (422, "after"), (422, "all"), (422, "function"),
    ]  # fmt: skip
