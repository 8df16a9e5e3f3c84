"""Live calls as HTTP and jobs use them: asyncio around `Origins`."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pilotlight_core.bus import Bus
from pilotlight_core.model import subjects
from pilotlight_core.model.api.call_api import CallStatus
from pilotlight_core.model.errors import PilotlightError, Unavailable
from pilotlight_core.model.ids import new_call_id
from pilotlight_core.model.messages.scheduling import AskCall
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import (
    BegunCall,
    CallEvent,
    CallResult,
    CallStatistics,
    CallWaiter,
    ChunkEvent,
    StageEvent,
)
from pilotlight_gateway.calls.in_flight_call import InFlightCall
from pilotlight_gateway.calls.origin import Origin
from pilotlight_gateway.calls.origins import Origins
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.cluster.remote_lookup import RemoteLookup
from pilotlight_gateway.cluster.shard_table import ShardTable
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_gateway.home.home_report import HomeStatistics

BUNCH_BYTES = 64 * 1024
"""Events are taken together until their chunks have so many bytes."""


@dataclass(kw_only=True, eq=False)
class AwaitedCall(InFlightCall):
    """A call that a task waits for. `answer` is done when it has ended."""

    answer: asyncio.Future[CallResult]
    budget: ByteBudget
    _events: deque[CallEvent] = field(default_factory=deque)
    """Bounded by the window that the origin gives the guest, and by the budget."""
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _held: int = 0

    def report_stage(self, name: str, ms: float, detail: Mapping[str, object]) -> None:
        if self.call.stream and not self.answer.done():
            self._events.append(StageEvent(name=name, ms=ms, detail=dict(detail)))
            self._news.set()

    def relay_chunk(self, seq: int, data: bytes) -> None:
        if self.call.stream:
            self.budget.take(len(data), self.call.tenant)
            self._held += len(data)
            self._events.append(ChunkEvent(seq=seq, data=data))
            self._news.set()

    def finish(self, result: CallResult) -> None:
        if not self.answer.done():
            self.answer.set_result(result)
            self._events.append(result)
            self._news.set()

    def fail(self, error: PilotlightError) -> None:
        if self.answer.cancelled():  # with its task; the call's status has the error
            self.error = error.with_traceback(None)
        elif not self.answer.done():
            # Its traceback knows frames that know this call: a cycle, which would wait for the garbage collector.
            self.error = error.with_traceback(None)
            self.answer.set_exception(self.error)
            self.answer.exception()  # somebody may have stopped waiting: that is no warning
            self._news.set()

    async def next_events(self) -> list[CallEvent]:
        """Wait for the next events: those that are there, in order, up to BUNCH_BYTES. Raises the call's error."""
        events = self._events
        while not events:
            if self.answer.done():
                return [self.answer.result()]
            self._news.clear()
            await self._news.wait()
        bunch: list[CallEvent] = []
        size = 0
        while events and size < BUNCH_BYTES:
            event = events.popleft()
            size += len(event.data) if isinstance(event, ChunkEvent) else 0
            bunch.append(event)
        return bunch

    def was_read(self, size: int) -> None:
        """Give the bytes of chunks back."""
        self.budget.give_back(size, self.call.tenant)
        self._held -= size

    def release(self) -> None:
        """Give the bytes of unread chunks back."""
        self.budget.give_back(self._held, self.call.tenant)
        self._held = 0


@dataclass(kw_only=True, eq=False)
class WaitedCall(InFlightCall):
    """A call whose result a waiter is told at once."""

    origins: Origins
    waiter: CallWaiter | None
    """None: nobody waits any more."""

    def report_stage(self, name: str, ms: float, detail: Mapping[str, object]) -> None:
        pass  # only streams have stages

    def relay_chunk(self, seq: int, data: bytes) -> None:
        pass

    def finish(self, result: CallResult) -> None:
        waiter, self.waiter = self.waiter, None
        if waiter is not None:
            waiter.finished(result)

    def fail(self, error: PilotlightError) -> None:
        self.error = error.with_traceback(None)
        waiter, self.waiter = self.waiter, None
        if waiter is not None:
            waiter.failed(error)

    def end(self) -> None:
        """See `BegunCall`."""
        self.waiter = None
        self.origins.end(self)


class CallService:
    """The real `CallPort`."""

    def __init__(
        self,
        bus: Bus,
        origins: Origins,
        shards: ShardTable,
        fleet: FleetView,
        homes: Callable[[], list[HomeStatistics]],
        *,
        region: str,
        budget: ByteBudget,
    ) -> None:
        """`homes` returns the statistics of this gateway's homes."""
        self._bus = bus
        self._origins = origins
        self._shards = shards
        self._fleet = fleet
        self._homes = homes
        self._region = region
        self._budget = budget
        self._elsewhere = RemoteLookup(bus, shards, region=region)

    def new_id(self) -> str:
        if not self._shards.epoch:
            raise Unavailable("This gateway has no identity yet.", code="starting", retry_after=1.0)
        return new_call_id(self._region, self._shards.epoch, time.time())

    def address_of_home(self, function: str) -> bytes:
        return self._shards.address_of_home(subjects.shard_of(function))

    def begin(self, call: PreparedCall, waiter: CallWaiter) -> BegunCall:
        live = WaitedCall(
            call=call,
            shard=subjects.shard_of(call.function),
            origin=Origin(call, self._shards.instance, self._origins.clock()),
            origins=self._origins,
            waiter=waiter,
        )
        self._origins.begin(live)
        return live

    async def run(self, call: PreparedCall) -> CallResult:
        live = self._begin(call)
        try:
            return await live.answer
        finally:
            self._end(live)
            del live  # its error knows this frame: a cycle would keep the call's input until it is collected

    async def stream(self, call: PreparedCall) -> AsyncIterator[list[CallEvent]]:
        live = self._begin(call)
        try:
            last: CallEvent | None = None
            while not isinstance(last, CallResult):
                bunch = await live.next_events()
                yield bunch
                last = bunch[-1]
                sizes = [len(event.data) for event in bunch if isinstance(event, ChunkEvent)]
                if sizes:
                    live.was_read(sum(sizes))
                    self._origins.was_read(live, len(sizes), sum(sizes))
        finally:
            self._end(live)
            del live  # as above

    async def cancel(self, tenant: str, id: str) -> bool:  # noqa: A002 - the name of the thing in the API
        reply = self._origins.answer(AskCall(tenant=tenant, call_id=id, cancel=True))
        return (reply if reply.status is not None else await self._elsewhere.ask(tenant, id, cancel=True)).cancelled

    def end_calls_of(self, is_over: Callable[[str], bool], reason: str) -> int:
        """Cancel this gateway's calls of the tenants for which `is_over` is true; how many."""
        return self._origins.end_calls_of(is_over, reason)

    async def status(self, tenant: str, id: str) -> CallStatus:  # noqa: A002
        reply = self._origins.answer(AskCall(tenant=tenant, call_id=id))
        if reply.status is None:
            reply = await self._elsewhere.ask(tenant, id)
        assert reply.status is not None  # noqa: S101 - `ask` raises instead
        return reply.status

    def containers(self, tenant: str | None) -> list[dict[str, Any]]:
        return self._fleet.containers(tenant, self._origins.clock())

    def nodes(self) -> list[dict[str, Any]]:
        return self._fleet.nodes(self._origins.clock())

    def ready(self) -> str:
        if not self._bus.connected:
            return "not connected to the bus"
        return "" if self._shards.is_settled else "functions have no home yet"

    def statistics(self) -> CallStatistics:
        at, homes = self._origins.clock(), self._homes()
        reports = self._fleet.reports(at)
        return CallStatistics(
            scheduling=tuple(homes),
            queued=sum(one.queued for one in homes),
            oldest_ms=max((one.oldest_ms for one in homes), default=0.0),
            homes=len(homes),
            running=self._origins.running(),
            containers=self._fleet.by_state(at),
            nodes=len(reports),
            blanks=sum(sum(report.blanks.values()) for report in reports),
        )

    def _begin(self, call: PreparedCall) -> AwaitedCall:
        live = AwaitedCall(
            call=call,
            shard=subjects.shard_of(call.function),
            origin=Origin(call, self._shards.instance, self._origins.clock()),
            answer=self._bus.loop.create_future(),
            budget=self._budget,
        )
        self._origins.begin(live)
        return live

    def _end(self, live: AwaitedCall) -> None:
        self._origins.end(live)
        live.release()
