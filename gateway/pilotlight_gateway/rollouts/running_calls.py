"""Tells the judge of compared calls that run longer than is usual before they end: a call that hangs says so then.

An agent says when such a call begins. What is usual is read from where the judge's keeper has written it, only while
some call runs for long, and each call is told of once. Nothing is known here that must not be lost.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import structlog
from msgspec.structs import replace

from pilotlight_core.bus import BusError
from pilotlight_core.model.messages.call_messages import Spent, Started
from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.in_flight_call import InFlightCall
from pilotlight_gateway.calls.prepared_call import PreparedCall, is_watched
from pilotlight_gateway.judging.call_folding import is_warm
from pilotlight_gateway.judging.usual.slow_limits import SlowLimits

EVERY_S = 0.25
LEAST_S = 0.25
"""Calls that end sooner say at their end how long they took."""
LATE_S = 0.1
"""What a call has surely run is less by this: that it has ended may be on the way."""
FRESH_S = 1.0
"""For so long what is usual is not read again."""

log = structlog.get_logger(__name__)


@dataclass(slots=True, kw_only=True)
class _Running:
    """A call in a container. Instants are monotonic seconds."""

    number: int
    """Of its grant."""
    begun_at: float
    before_ms: float
    """How long earlier starts of it have run."""
    course: CallResult
    told: ComparedCall | None = None
    """What its judge would be told; None: it has not run for long yet."""
    limits: SlowLimits | None = None
    """By which `slow_after_ms` was worked out."""
    slow_after_ms: float = math.inf


class _Read(NamedTuple):
    limits: SlowLimits | None
    at: float


@dataclass(kw_only=True)
class RunningCalls:
    """Of one gateway; `begun` takes what agents say, `run` looks at it."""

    find: Callable[[str], InFlightCall | None]
    """A live call, by its id."""
    compared: Callable[[PreparedCall, CallResult, float], ComparedCall | None]
    """`ComparedSink.running_call`."""
    read: Callable[[str, str], Awaitable[SlowLimits | None]]
    """`EvidenceStore.limits`."""
    note: Callable[[str, str, ComparedCall], None]
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    _running: dict[str, _Running] = field(default_factory=dict)
    _known: dict[tuple[str, str], _Read] = field(default_factory=dict)
    """By owner and app, of those whose calls run for long now."""
    _has_some: asyncio.Event = field(default_factory=asyncio.Event)

    def __len__(self) -> int:
        return len(self._running)

    def begun(self, live: InFlightCall, started: Started, at: float) -> None:
        """The agent says that a call of a rollout has begun; those of 0.1 do not say enough. Of a class with hooks its
        own method is what is measured.
        """
        grant, pipeline = live.origin.grant, live.pipeline
        if grant is None or not started.nth or not is_watched(live.call):
            return
        if pipeline is not None and (pipeline.stage or pipeline.is_cold):
            return
        if grant.grant_number != started.grant_number:
            return
        course = CallResult(
            output=b"", container=grant.container, nth=started.nth, batch=started.batch, grant=grant,
            cold_start=grant.timeline if grant.start_ms else None, spent=Spent(ns=0, ppm=0, price=started.price),
        )  # fmt: skip
        before_ms = live.origin.attempts.execute
        self._running[live.call.call_id] = _Running(
            number=grant.grant_number, begun_at=at, before_ms=before_ms, course=course
        )
        self._has_some.set()

    async def run(self) -> None:
        """Look at what runs, while there is something."""
        while True:
            await self._has_some.wait()
            await asyncio.sleep(EVERY_S)
            try:
                await self.report_slow()
            except Exception:
                log.exception("calls that run were not looked at")
            if not self._running:
                self._has_some.clear()

    async def report_slow(self) -> None:
        """Tell of the calls that run for too long now."""
        apps: dict[tuple[str, str], list[str]] = {}
        at = self.clock()
        for call_id, one in list(self._running.items()):
            live = self.find(call_id)
            if live is None or not live.origin.uses(one.number):
                del self._running[call_id]
            elif at - one.begun_at >= LEAST_S:
                apps.setdefault((live.call.version.tenant, live.call.version.app), []).append(call_id)
        self._known = {app: known for app, known in self._known.items() if app in apps}
        for (tenant, app), call_ids in apps.items():
            limits = await self._limits(tenant, app)
            if limits is not None:
                at = self.clock()
                for call_id in call_ids:
                    self._report(tenant, app, call_id, limits, at)

    def _report(self, tenant: str, app: str, call_id: str, limits: SlowLimits, at: float) -> None:
        """Tell of a call, if it runs still, and for too long."""
        one, live = self._running.get(call_id), self.find(call_id)
        if one is None or live is None or not live.origin.uses(one.number):
            return
        if one.told is None:
            one.told = self.compared(live.call, one.course, 0.0)
            if one.told is None or not is_warm(one.told):
                del self._running[call_id]
                return
        if one.limits is not limits:
            after_ms = limits.slow_after_ms(one.told)
            one.limits, one.slow_after_ms = limits, math.inf if after_ms is None else after_ms
        execute_ms = one.before_ms + (at - one.begun_at - LATE_S) * 1e3
        if execute_ms > one.slow_after_ms:
            total_ms = (at - live.call.arrived_at) * 1e3
            self.note(
                tenant, app, replace(one.told, at=self.wall(), execute_ms=execute_ms, total_ms=max(0.0, total_ms))
            )
            del self._running[call_id]

    async def _limits(self, tenant: str, app: str) -> SlowLimits | None:
        """What the judge has said last."""
        known, at = self._known.get((tenant, app)), self.clock()
        if known is not None and at - known.at < FRESH_S:
            return known.limits
        last = known.limits if known is not None else None
        try:
            limits = await self.read(tenant, app)
        except (BusError, OSError) as error:
            log.debug("what is usual was not read", app=app, error=str(error))
            limits = last
        limits = last if limits == last else limits
        self._known[tenant, app] = _Read(limits, self.clock())
        return limits
