"""Who asks for events gets theirs, behind the last one that they have."""

from __future__ import annotations

from typing import Any

from pilotlight_core.bus import DecodedMessage
from pilotlight_core.model.messages.logs import EventKind, PlatformEvent
from pilotlight_gateway.events.event_reader import EVERYBODY, EventQuery, MemoryEvents, read_events


def source() -> MemoryEvents:
    told = [
        PlatformEvent(at=1.0, kind=EventKind.SCALED, tenant="acme", function="acme:shop.sell", says="one"),
        PlatformEvent(at=2.0, kind=EventKind.NODE_LOST, says="two", operator={"node": "n1"}),
        PlatformEvent(at=3.0, kind=EventKind.SLOWED, tenant="acme", function="b:x.y", says="three",
                      operator={"neighbour": "loud"}),
        PlatformEvent(at=4.0, kind=EventKind.BREAKER_OPENED, tenant="acme", function="acme:shop.sell", says="four"),
    ]  # fmt: skip
    return MemoryEvents(
        kept=[DecodedMessage(seq=10 + i, subject="events", message=one, at=one.at) for i, one in enumerate(told)]
    )


async def ids(**query: Any) -> list[int]:
    return [event.id async for event in read_events(source(), EventQuery(**query))]


async def test_a_tenant_has_its_own_and_operators_have_all() -> None:
    assert await ids(tenant="acme") == [10, 12, 13]
    assert await ids(tenant="other") == []
    assert await ids(tenant=EVERYBODY) == [10, 11, 12, 13]


async def test_they_are_chosen_by_kind_function_and_time() -> None:
    assert await ids(tenant="acme", kind="breaker") == [13]
    assert await ids(tenant="acme", function="shop.sell") == [10, 13]
    assert await ids(tenant="acme", since=2.5) == [12, 13]
    assert await ids(tenant="acme", tail=1) == [13]


async def test_they_go_on_behind_the_last_one() -> None:
    assert await ids(tenant="acme", after=12) == [13]
    assert await ids(tenant="acme", after=13, follow=True) == []


async def test_what_names_others_is_for_operators() -> None:
    for is_operator, facts in ((False, {}), (True, {"neighbour": "loud"})):
        query = EventQuery(tenant="acme", kind="flow", is_operator=is_operator)
        assert [event.facts async for event in read_events(source(), query)] == [facts]
