"""Who asks for events gets theirs, behind the last one that they have."""

from __future__ import annotations

from typing import Any

from pilotlight_core.bus import DecodedMessage
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.logs import EventKind, PlatformEvent
from pilotlight_gateway.events.event_reader import (
    EVERYBODY,
    EventQuery,
    MemoryEvents,
    kind_subject,
    last_levels,
    read_events,
)


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


def test_the_server_chooses_by_what_names_a_kind() -> None:
    """By a whole kind, or by the first part of several; by a beginning that is none whoever reads does."""
    chosen = {
        kind: kind_subject(kind)
        for kind in ("", "breaker", "breaker.", "breaker.opened", "break", "breaker.op", "*", "a.>")
    }
    assert chosen == {
        "": "", "breaker": "breaker", "breaker.": "breaker", "breaker.opened": "breaker.opened", "break": "",
        "breaker.op": "", "*": "", "a.>": "",
    }  # fmt: skip
    assert all(kind_subject(kind) == kind for kind in EventKind)
    assert subjects.platform_events_of("local", "acme") == "events.local.acme.>"
    assert subjects.platform_events_of("local", "*", "breaker") == "events.local.*.breaker.>"
    assert subjects.platform_events_of("local", "acme", "slo.kept") == "events.local.acme.slo.kept"


async def test_what_was_told_last_of_levels_is_read_by_function() -> None:
    told = [
        PlatformEvent(at=1.0, kind=kind, tenant="acme", function=f"acme:shop.{name}", says="", facts={"level": "unary"})
        for kind, name in ((EventKind.SLO_BROKEN, "a"), (EventKind.SLO_BROKEN, "b"), (EventKind.SLO_KEPT, "a"))
    ]
    kept = [DecodedMessage(seq=1 + i, subject="events", message=one, at=one.at) for i, one in enumerate(told)]
    found = await last_levels(MemoryEvents(kept=kept), "acme")
    assert found == {("acme:shop.a", "unary"): False, ("acme:shop.b", "unary"): True}


async def test_they_go_on_behind_the_last_one() -> None:
    assert await ids(tenant="acme", after=12) == [13]
    assert await ids(tenant="acme", after=13, follow=True) == []


async def test_what_names_others_is_for_operators() -> None:
    for is_operator, facts in ((False, {}), (True, {"neighbour": "loud"})):
        query = EventQuery(tenant="acme", kind="flow", is_operator=is_operator)
        assert [event.facts async for event in read_events(source(), query)] == [facts]
