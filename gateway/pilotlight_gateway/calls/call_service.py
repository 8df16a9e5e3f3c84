"""Live calls as HTTP and jobs use them: asyncio around `Origins`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

from mypy_extensions import mypyc_attr

from pilotlight_core.bus import Bus
from pilotlight_core.model import subjects
from pilotlight_core.model.api.call_api import CallStatus
from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.ids import new_call_id
from pilotlight_core.model.messages.scheduling import AskCall
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_pipeline import pipeline_of_call
from pilotlight_gateway.calls.call_port import BegunCall, CallResult, CallStatistics, CallWaiter, ChunkTaker
from pilotlight_gateway.calls.live_calls import AwaitedCall, CallStream, WaitedCall
from pilotlight_gateway.calls.origin import Origin
from pilotlight_gateway.calls.origins import Origins
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.cluster.remote_lookup import RemoteLookup
from pilotlight_gateway.cluster.shard_table import ShardTable
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_gateway.home.home_report import HomeStatistics


@mypyc_attr(allow_interpreted_subclasses=True)
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
        assert call.hooks is None  # noqa: S101 - a class with hooks is awaited: its values are held meanwhile
        origins = self._origins
        origin = Origin(call, self._shards.instance, origins.clock(), call.last_number)
        live = WaitedCall(call, subjects.shard_of(call.function), origin, origins, waiter)
        origins.begin(live)
        return live

    async def run(self, call: PreparedCall) -> CallResult:
        live = self._begin(call)
        try:
            return await live.answer
        finally:
            self._end(live)
            del live  # its error knows this frame: a cycle would keep the call's input until it is collected

    def stream(self, call: PreparedCall, taker: ChunkTaker | None = None) -> CallStream:
        live = self._begin(call)
        live.taker = taker if call.stream else None
        return CallStream(live, self._origins)

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

    def each_container(self, tenant: str | None) -> Iterator[dict[str, Any]]:
        return self._fleet.each_container(tenant, self._origins.clock())

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
        pipeline = pipeline_of_call(call)
        first = call if pipeline is None else pipeline.begin()
        origin = Origin(first, self._shards.instance, self._origins.clock(), call.last_number)
        answer: asyncio.Future[CallResult] = self._bus.loop.create_future()
        live = AwaitedCall(call, subjects.shard_of(first.function), origin, answer, self._budget)
        live.pipeline = pipeline
        self._origins.begin(live)
        return live

    def _end(self, live: AwaitedCall) -> None:
        self._origins.end(live)
        live.release()
