"""Events over a real bus: stored in order, few of a kind in a minute, and nobody waits for them."""

from __future__ import annotations

from pilotlight_core.bus import Bus, connect
from pilotlight_core.host.events.bus_event_log import KEPT, OF_A_KIND, OF_THE_PLATFORM, WITHIN_S, BusEventLog, EventRate
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.logs import EventKind, PlatformEvent
from tests.waiting import until_found


def event(tenant: str, number: int = 0, at: float = 1.0) -> PlatformEvent:
    return PlatformEvent(at=at, kind=EventKind.SCALED, tenant=tenant, function=f"{tenant}:a.f{number}", says="more")


async def test_events_are_stored_in_their_order(server_url: str) -> None:
    tenant = f"t{token(8)}"
    async with connect(server_url, name="events") as bus:
        log = BusEventLog(bus, region="local")
        async with log.running():
            for number in range(5):
                log.note(event(tenant, number))
            log.note(PlatformEvent(at=2.0, kind=EventKind.NODE_LOST, says="gone"))

            async def all_told() -> list[PlatformEvent] | None:
                told = await stored(bus, tenant)
                return told if len(told) == 5 else None

            told = await until_found(all_told)
    assert [one.function for one in told] == [f"{tenant}:a.f{number}" for number in range(5)]
    assert log.dropped == 0


async def stored(bus: Bus, tenant: str) -> list[PlatformEvent]:
    subject = subjects.platform_events_of("local", tenant)
    return [each.message async for each in bus.read_stream(subjects.EVENTS_STREAM, subject)]


async def test_what_must_not_be_lost_is_stored_under_its_name_once(server_url: str) -> None:
    """However many of a kind there are."""
    tenant = f"t{token(8)}"
    async with connect(server_url, name="events") as bus:
        for _ in range(2):
            log = BusEventLog(bus, region="local")
            for number in range(OF_A_KIND + 1):
                await log.store(event(tenant, 7), f"{tenant}.{number}")
        told = await stored(bus, tenant)
    assert len(told) == OF_A_KIND + 1
    assert log.dropped == 0


async def test_the_server_is_asked_for_one_kind(server_url: str) -> None:
    """Of one tenant, or of all: nothing else is sent."""
    tenant = f"t{token(8)}"
    async with connect(server_url, name="events") as bus:
        log = BusEventLog(bus, region="local")
        kinds = (EventKind.SCALED, EventKind.BREAKER_OPENED, EventKind.BREAKER_CLOSED)
        async with log.running():
            for kind in kinds:
                log.note(PlatformEvent(at=1.0, kind=kind, tenant=tenant, says="x"))

            async def all_told() -> bool | None:
                return len(await stored(bus, tenant)) == len(kinds) or None

            await until_found(all_told)

        async def told(kind: str, whose: str) -> list[str]:
            subject = subjects.platform_events_of("local", whose, kind)
            found = bus.read_stream(subjects.EVENTS_STREAM, subject)
            return [each.message.kind async for each in found if each.message.tenant == tenant]

        assert await told("breaker", tenant) == ["breaker.opened", "breaker.closed"]
        assert await told("breaker.closed", "*") == ["breaker.closed"]
        assert await told("function.scaled", tenant) == ["function.scaled"]


def test_a_function_that_flaps_is_told_of_now_and_then() -> None:
    rate = EventRate()
    passed = [rate.passes(event("t", at=at * 0.5)) for at in range(40)]

    assert sum(passed) == OF_A_KIND
    assert rate.passes(event("t", at=WITHIN_S + 1.0))
    assert rate.passes(event("t", 1, at=20.0))  # another one


def test_what_concerns_no_tenant_is_more() -> None:
    """A rack that is lost has more nodes than a function has reasons."""
    rate = EventRate()
    lost = PlatformEvent(at=1.0, kind=EventKind.NODE_LOST, says="gone")
    assert sum(rate.passes(lost) for _ in range(OF_THE_PLATFORM + 5)) == OF_THE_PLATFORM


async def test_what_does_not_fit_is_counted(server_url: str) -> None:
    async with connect(server_url, name="events") as bus:
        log = BusEventLog(bus, region="local")  # nothing is stored: it does not run
        for number in range(KEPT + 3):
            log.note(event("t", number))
    assert log.dropped == 3


async def test_one_that_is_too_large_keeps_none_of_the_others(server_url: str) -> None:
    """It is counted, and ends no process."""
    tenant = f"t{token(8)}"
    async with connect(server_url, name="events") as bus:
        log = BusEventLog(bus, region="local")
        async with log.running():
            large = PlatformEvent(at=1.0, kind=EventKind.SCALED, tenant=tenant, says="", facts={"x": "y" * 2**24})
            log.note(large)
            log.note(event(tenant, 1))

            async def told() -> list[PlatformEvent] | None:
                return await stored(bus, tenant) or None

            (found,) = await until_found(told)
    assert (found.function, log.dropped) == (f"{tenant}:a.f1", 1)
