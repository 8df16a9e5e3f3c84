"""A gateway looks at its homes, and tells what has changed."""

from __future__ import annotations

from typing import cast

import pytest

from pilotlight_core.host.events.event_log import MemoryEventLog
from pilotlight_core.model.messages.logs import EventKind
from pilotlight_core.model.messages.scheduling import BreakerReport
from pilotlight_gateway.events import home_events
from pilotlight_gateway.events.home_events import HomeEvents
from pilotlight_gateway.home.home_report import HomeStatistics
from pilotlight_gateway.home.homes import Homes
from tests.waiting import until


class StubQueue:
    version, function = "v1", "acme:shop.sell"


class StubHome:
    """One home, with a breaker that is open as long as `is_open` says."""

    is_open = True
    queues = (StubQueue(),)

    def statistics(self, at: float) -> HomeStatistics:
        return HomeStatistics(queued=0, oldest_ms=at * 0.0, granted=0, containers=0, versions=1, deposed=0)

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
