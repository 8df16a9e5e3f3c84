"""A gateway looks at its homes, and tells what has changed."""

from __future__ import annotations

from typing import cast

import pytest
from structlog.testing import capture_logs

from pilotlight_core.host.events.event_log import MemoryEventLog
from pilotlight_core.model.messages.logs import EventKind
from pilotlight_core.model.messages.scheduling import BreakerReport
from pilotlight_gateway.events import home_events
from pilotlight_gateway.events.home_events import NAMED, HomeEvents
from pilotlight_gateway.home.home_report import HomeStatistics
from pilotlight_gateway.home.homes import Homes
from pilotlight_gateway.home.slowdown import SlowFlow
from tests.waiting import until


class StubQueue:
    version, function = "v1", "acme:shop.sell"


class StubHome:
    """One home, with a breaker that is open as long as `is_open` says."""

    is_open = True
    slow: tuple[SlowFlow, ...] = ()
    queues = (StubQueue(),)

    def statistics(self, at: float) -> HomeStatistics:
        return HomeStatistics(
            queued=0, oldest_ms=at * 0.0, granted=0, containers=0, versions=1, deposed=0, slow=self.slow
        )

    def breakers(self, at: float) -> list[BreakerReport]:
        return [BreakerReport(version="v1", state="open", failures=3, retry_after=at)] if self.is_open else []


def test_a_breaker_is_told_with_its_function_when_it_opens_and_when_it_closes() -> None:
    home, log = StubHome(), MemoryEventLog()
    events = HomeEvents(cast("Homes", [home]), log)

    events.refresh(100.0, 1.0)
    events.refresh(101.0, 2.0)
    home.is_open = False
    events.refresh(102.0, 3.0)

    assert [(event.kind, event.at, event.tenant, event.function) for event in log.events] == [
        (EventKind.BREAKER_OPENED, 100.0, "acme", "acme:shop.sell"),
        (EventKind.BREAKER_CLOSED, 102.0, "acme", "acme:shop.sell"),
    ]


async def test_a_home_that_cannot_be_read_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked at again a moment later."""

    class BrokenOnce(StubHome):
        looked = 0

        def statistics(self, at: float) -> HomeStatistics:
            self.looked += 1
            if self.looked == 1:
                raise ValueError("no")
            return super().statistics(at)

    monkeypatch.setattr(home_events, "EVERY_S", 0.001)
    log = MemoryEventLog()
    async with HomeEvents(cast("Homes", [BrokenOnce()]), log).running():
        await until(lambda: bool(log.events))
    assert log.events[0].kind == EventKind.BREAKER_OPENED


def flow(tenant: str, slowdown: float = 9.0) -> SlowFlow:
    """A slow one."""
    return SlowFlow(
        version="v", function="acme:shop.sell", tenant=tenant, priority="batch", slowdown=slowdown, calls=50,
        neighbour="elephant",
    )  # fmt: skip


def test_a_slow_flow_is_named_in_the_log_once_and_its_end_too() -> None:
    """With the tenant that has most of the slots."""
    home = StubHome()
    home.is_open = False
    events = HomeEvents(cast("Homes", [home]), MemoryEventLog())
    with capture_logs() as lines:
        for slow in ([flow("mouse")], [flow("mouse", 12.0)], [], []):
            home.slow = tuple(slow)
            events.refresh(100.0, 1.0)

    assert [(line["log_level"], line["tenant"]) for line in lines] == [("warning", "mouse"), ("info", "mouse")]
    assert (lines[0]["neighbour"], lines[0]["slowdown"], lines[0]["slow_flows"]) == ("elephant", 9.0, 1)


def test_no_more_flows_are_named_than_allowed() -> None:
    """The slowest are, the others are counted."""
    home = StubHome()
    home.is_open = False
    home.slow = tuple(flow(f"t{number}", 5.0 + number) for number in range(NAMED + 10))
    with capture_logs() as lines:
        HomeEvents(cast("Homes", [home]), MemoryEventLog()).refresh(100.0, 1.0)

    assert len(lines) == NAMED
    assert lines[0]["tenant"] == f"t{NAMED + 9}"
    assert {line["slow_flows"] for line in lines} == {NAMED + 10}
