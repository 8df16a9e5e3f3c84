"""Looks at the homes of this gateway now and then, and tells what has changed: events for whom it concerns, and for
flows that others slow down a line in the operator's log, which names both. Metrics count them without naming tenants.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import islice

import structlog

from pilotlight_core.host.events.event_log import EventLog
from pilotlight_core.model.messages.logs import EventKind, PlatformEvent
from pilotlight_gateway.events.pressure_events import FOLLOWED, PressureEvents
from pilotlight_gateway.events.refreshing import refreshing
from pilotlight_gateway.home.homes import Homes

EVERY_S = 5.0
"""Each look walks over all flows."""
NAMED = 32
"""Flows that are named in the log after one look."""

log = structlog.get_logger(__name__)


class HomeEvents:
    """Of one gateway; `running` looks."""

    def __init__(self, homes: Homes, events: EventLog) -> None:
        self._homes = homes
        self._events = events
        self._pressure = PressureEvents()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Look until the block ends."""
        async with refreshing(self._refresh_now, EVERY_S, "homes"):
            yield

    async def _refresh_now(self) -> None:
        self.refresh(time.time(), time.monotonic())

    def refresh(self, at: float, monotonic: float) -> None:
        """Tell what has changed since the last look."""
        homes, shed = list(self._homes), Counter[int]()
        told = [home.statistics(monotonic) for home in homes]
        for each in told:
            shed.update(each.shed)
        reports = list(islice((report for home in homes for report in home.breakers(monotonic)), FOLLOWED))
        named = {report.version for report in reports}
        functions = {queue.version: queue.function for home in homes for queue in home.queues if queue.version in named}
        slow = [flow for each in told for flow in each.slow]
        changes = self._pressure.changes(reports, slow, shed, functions, at)
        for event in changes:
            self._events.note(event)
        _log_slow(changes, len(slow))


def _log_slow(changes: Iterable[PlatformEvent], slow: int) -> None:
    """Name the flows that have become slow, the slowest first, and those that are slow no more."""
    for kind, write, text in (
        (EventKind.SLOWED, log.warning, "a flow is slowed down"),
        (EventKind.RECOVERED, log.info, "a flow is not slowed down any more"),
    ):
        for event in islice((one for one in changes if one.kind == kind), NAMED):
            write(text, tenant=event.tenant, function=event.function, slow_flows=slow, **event.facts, **event.operator)
