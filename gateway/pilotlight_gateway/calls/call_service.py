"""Live calls: the rim around `Origin`. It tells it what happens, and has its actions performed (`effect_runner.py`).

Everything that arrives is handled in the bus's read loop by plain functions, in order; only callers wait. One call
costs one publish, one frame back, and one timer; if its function's home is another gateway, a word to it, its grant,
and a word when it has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import structlog

from pilotlight_core.bus import NO_RESPONDERS, Bus, BusDown, Handler
from pilotlight_core.model import subjects
from pilotlight_core.model.api.call_api import CallStatus
from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.ids import new_call_id
from pilotlight_core.model.messages.agent_messages import (
    Chunk,
    ContainerState,
    Credit,
    Ended,
    Grant,
    NodeReport,
    Refused,
    Shortage,
    Started,
)
from pilotlight_core.model.messages.scheduling import AskCall, Breakers, CallTold, Dropped, Settle, ToOrigin
from pilotlight_gateway.calls.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_book import CallBook
from pilotlight_gateway.calls.call_plan import CallPlan
from pilotlight_gateway.calls.call_port import CallEvent, CallResult, CallStatistics, ChunkEvent, PreparedCall
from pilotlight_gateway.calls.effect_runner import EffectRunner
from pilotlight_gateway.calls.effects import settlement_of
from pilotlight_gateway.calls.in_flight import InFlightCall
from pilotlight_gateway.calls.large_bodies import INLINE_BYTES, LargeBodies
from pilotlight_gateway.calls.origin import Origin, OriginState
from pilotlight_gateway.calls.reconciler import NODE, Reconciler
from pilotlight_gateway.calls.remote_lookup import RemoteLookup
from pilotlight_gateway.cluster.homes import Homes
from pilotlight_gateway.cluster.outbox import Outbox
from pilotlight_gateway.cluster.shards import Shards
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_gateway.home.home import QueueLimits
from pilotlight_gateway.home.node_incarnations import GoneNode, NodeIncarnations
from pilotlight_gateway.home.slow_log import SlowLog
from pilotlight_gateway.limits.call_usage import UsageTracker

WATCH_S = 0.5
"""How often silent nodes are looked for, and agents are told which calls are wanted."""

log = structlog.get_logger()


class CallService:
    """The calls whose callers this gateway holds, and the queues that it is home of. The real `CallPort`."""

    def __init__(
        self,
        bus: Bus,
        *,
        region: str,
        gateway: str,
        name: str,
        bodies: LargeBodies,
        budget: ByteBudget,
        limits: QueueLimits,
    ) -> None:
        self._bus = bus
        self._region = region
        self._gateway = gateway
        """Of this process alone: whoever speaks to a former process finds nobody."""
        self._budget = budget
        self._mailbox = Outbox(bus, region)
        self._homes = Homes(bus, self, self._mailbox, region=region, gateway=gateway, limits=limits)
        self.shards = Shards(bus, self, region=region, name=name, instance=gateway)
        self._homes.ownership = self.shards
        self._elsewhere = RemoteLookup(bus, self.shards, region=region)
        self._book = CallBook()
        self.fleet = FleetView()
        self._nodes = NodeIncarnations()
        self._tabs = UsageTracker()
        self._reconciler = Reconciler(bus, self._book, self._tabs, region=region, gateway=gateway)
        self._slow_log = SlowLog()
        self._performer = EffectRunner(
            bus=bus,
            homes=self._homes,
            shards=self.shards,
            mailbox=self._mailbox,
            bodies=bodies,
            tabs=self._tabs,
            region=region,
            gateway=gateway,
        )
        self._perform = self._performer.perform

    # -- the life of the whole -----------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Listen, lead and watch until the block ends."""
        region, gateway = self._region, self._gateway
        handlers: dict[str, Handler] = {
            subjects.reply(region, gateway): self._on_frame,
            subjects.unheard(region, gateway): self._on_unheard,
            subjects.credit(region): self._on_credit,
            subjects.beat(region): self._on_report,
            subjects.shortage(region): self._on_shortage,
            subjects.breakers(region): self._on_breakers,
            subjects.to_home(region, gateway): self._homes.on_mail,
            subjects.to_origin(region, gateway): self._on_mail,
            subjects.ask(region, gateway): self._on_ask,
        }
        listening = self._bus.listening(handlers, reconnected=self._reconnected)
        async with listening, self.shards.running(), asyncio.TaskGroup() as tasks:
            watch = tasks.create_task(self._watch())
            yield
            watch.cancel()
        self._homes.stop()

    # -- the shards' host ----------------------------------------------------------------------------------------

    def begin(self, shard: int, epoch: int, state: bytes) -> None:
        """This gateway is the home of a shard from now on."""
        self._homes.begin(shard, epoch, state)

    def end(self, shard: int) -> bytes:
        """It is not any more; returns what the next home should know."""
        return self._homes.end(shard)

    def homes_changed(self, shards: frozenset[int]) -> None:
        """What has not been granted is enqueued at the new homes."""
        at = time.monotonic()
        for live in self._book:
            if live.shard in shards and (owner := self.shards.owner(live.shard)) is not None:
                self._perform(live, live.origin.home_changed(owner.epoch, at))

    def gateway_gone(self, instance: str) -> None:
        """Nobody waits for its calls any more."""
        for home in self._homes:
            home.gateway_gone(instance)
        self._homes.stir_all()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_S)
            for gone in self._nodes.lost(time.monotonic()):
                self._node_gone(gone)
            self._nodes.forget(time.monotonic())
            self.fleet.forget(time.monotonic())
            self._tabs.expire(time.monotonic())
            self._reconciler.tell(time.monotonic())
            self._homes.tell_breakers(time.monotonic())
            if self._slow_log.is_due(at := time.monotonic()):
                self._slow_log.look((flow for home in self._homes for flow in home.statistics(at).slow), at)

    async def _reconnected(self) -> None:
        self._homes.stir_all()

    # -- the port ------------------------------------------------------------------------------------------------

    def new_id(self) -> str:
        """A fresh call id; see `CallPort`."""
        if not self.shards.epoch:
            raise Unavailable("This gateway has no identity yet.", code="starting", retry_after=1.0)
        return new_call_id(self._region, self.shards.epoch)

    async def run(self, call: PreparedCall) -> CallResult:
        """Run a call to its end; see `CallPort`."""
        live = self._begin(call)
        try:
            return await live.answer
        finally:
            self._end(live)
            del live  # its error knows this frame: a cycle would keep the call's input until it is collected

    async def stream(self, call: PreparedCall) -> AsyncIterator[CallEvent]:
        """Run a call and tell of it; see `CallPort`."""
        live = self._begin(call)
        try:
            async for event in live.events():
                yield event
                if isinstance(event, ChunkEvent):
                    self._perform(live, live.origin.was_read(len(event.data)))
        finally:
            self._end(live)
            del live  # as above

    async def cancel(self, tenant: str, id: str) -> bool:  # noqa: A002 - the name of the thing in the API
        """Cancel a call; see `CallPort`."""
        told = self._told_of(AskCall(tenant=tenant, id=id, cancel=True))
        return (told if told.status is not None else await self._elsewhere.ask(tenant, id, cancel=True)).cancelled

    async def status(self, tenant: str, id: str) -> CallStatus:  # noqa: A002
        """How a call is; see `CallPort`."""
        told = self._told_of(AskCall(tenant=tenant, id=id))
        if told.status is None:
            told = await self._elsewhere.ask(tenant, id)
        assert told.status is not None  # noqa: S101 - `ask` raises instead
        return told.status

    def _told_of(self, asked: AskCall) -> CallTold:
        live, status = self._book.find(asked.tenant, asked.id, time.monotonic())
        if not asked.cancel or live is None or live.origin.state is OriginState.DONE:
            return CallTold(status=status)
        self._perform(live, live.origin.cancel())
        return CallTold(status=status, cancelled=True)

    def containers(self, tenant: str | None) -> list[dict[str, Any]]:
        """The containers that nodes report; see `CallPort`."""
        return self.fleet.containers(tenant, time.monotonic())

    def nodes(self) -> list[dict[str, Any]]:
        """The nodes that report; see `CallPort`."""
        return self.fleet.nodes(time.monotonic())

    def ready(self) -> str:
        """Why no calls can be taken now; see `CallPort`."""
        if not self._bus.connected:
            return "not connected to the bus"
        return "" if self.shards.settled.is_set() else "functions have no home yet"

    def statistics(self) -> CallStatistics:
        """How it is, at once."""
        at = time.monotonic()
        told = self._homes.statistics(at)
        reports = self.fleet.reports(at)
        return CallStatistics(
            scheduling=tuple(told),
            queued=sum(one.queued for one in told),
            oldest_ms=max((one.oldest_ms for one in told), default=0.0),
            homes=len(told),
            running=sum(1 for live in self._book if live.origin.grant is not None),
            containers=self.fleet.by_state(at),
            nodes=len(reports),
            blanks=sum(sum(report.blanks.values()) for report in reports),
        )

    # -- one call ------------------------------------------------------------------------------------------------

    def _begin(self, call: PreparedCall) -> InFlightCall:
        at = time.monotonic()
        plan = CallPlan.of(call, self._gateway, inline=len(call.input) <= INLINE_BYTES)
        answer: asyncio.Future[CallResult] = self._bus.loop.create_future()
        shard = subjects.shard_of(plan.function)
        live = InFlightCall(call=call, shard=shard, origin=Origin(plan, at), answer=answer, budget=self._budget)
        self._book.enter(live)
        self._perform(live, live.origin.begin(at))
        return live

    def _end(self, live: InFlightCall) -> None:
        if live.origin.state is not OriginState.DONE:
            self._perform(live, live.origin.cancel("The caller went away."))
        self._performer.close_bodies(live)
        live.release()
        self._book.leave(live, time.monotonic())

    # -- what arrives --------------------------------------------------------------------------------------------

    def granted(self, grant: Grant, at: float) -> None:
        """A home lets a call go. One that has ended since tells so: its settlement was on the way, or is lost."""
        if (live := self._book.get(grant.call)) is not None:
            self._perform(live, live.origin.granted(grant, at))
        else:
            self._settle_late(Settle(call=grant.call, container=grant.container, number=grant.number), grant.epoch)

    def dropped(self, dropped: Dropped) -> None:
        """A home gives a call up."""
        if (live := self._book.get(dropped.call)) is not None:
            self._perform(live, live.origin.dropped(dropped))

    def _on_mail(self, _: str, message: object, __: str) -> None:
        if isinstance(message, ToOrigin):
            for grant in message.granted:
                self.granted(grant, time.monotonic())
            for dropped in message.dropped:
                self.dropped(dropped)

    def _on_ask(self, _: str, message: object, reply: str) -> None:
        if isinstance(message, AskCall):
            with contextlib.suppress(BusDown):
                self._bus.publish_nowait(reply, self._told_of(message))

    def _settle_late(self, item: Settle, epoch: int = 0) -> None:
        """Of a call that nobody waits for any more. A home elsewhere is told if it acts under `epoch`: of a grant that
        no agent has seen nobody else can tell. Else it hears from the agent's credits.
        """
        if (found := self.shards.home_under(epoch)) is not None and found[1] != self._gateway:
            self._mailbox.to_home(found[1], found[0], item)
        else:
            self._homes.settle(item, time.monotonic())

    def _on_frame(self, subject: str, message: object, reply: str) -> None:
        if not isinstance(message, Refused | Started | Chunk | Ended):
            self._on_credit(subject, message, reply)  # of a slot that we had taken for another gateway
            return
        if self._tabs.open and isinstance(message, Ended | Refused):
            self._tabs.told(message)
        if (live := self._book.get(message.call)) is not None:
            live.heard = at = time.monotonic()
            self._perform(live, live.origin.frame(message, at))
        elif isinstance(message, Ended):
            self._settle_late(settlement_of(message))

    def _on_unheard(self, subject: str, message: object, _: str) -> None:
        if message is not NO_RESPONDERS:
            return
        call, grant = subject.rsplit(".", 2)[1:]
        if call == NODE:
            for home in self._homes:
                home.node_unheard(grant, time.monotonic())
            self._homes.stir_all()
            return
        if (live := self._book.get(call)) is not None:
            self._perform(live, live.origin.no_responders(int(grant), time.monotonic()))

    def _on_credit(self, _: str, message: object, __: str) -> None:
        if not isinstance(message, Credit):
            return
        at = time.monotonic()
        self._node_seen(message.node, message.instance, at)
        self._homes.credit(message, at)
        if message.state is ContainerState.GONE:
            reason = message.reason or "its container is gone"
            for live in self._book:
                self._perform(live, live.origin.container_gone(message.container, reason, at))
        elif message.state is not ContainerState.READY:
            self._tell_waiting(message.version, message.state.value, at, **message.timeline)

    def _on_report(self, _: str, message: object, __: str) -> None:
        if not isinstance(message, NodeReport):
            return
        at = time.monotonic()
        self.fleet.on_report(message, at)
        if message.stopped:
            if (gone := self._nodes.stopped(message.node, message.instance)) is not None:
                self._node_gone(gone)
        else:
            self._node_seen(message.node, message.instance, at)

    def _on_breakers(self, _: str, message: object, __: str) -> None:
        if isinstance(message, Breakers):
            self.fleet.on_breakers(message, time.monotonic())

    def _on_shortage(self, _: str, message: object, __: str) -> None:
        if not isinstance(message, Shortage):
            return
        at = time.monotonic()
        for home in self._homes:
            home.shortage(message, at)
        self._tell_waiting(message.version, "waiting", at, reason=message.reason)
        self._homes.stir_all()

    def _tell_waiting(self, version: str, stage: str, at: float, /, **detail: Any) -> None:
        for live in self._book:
            if live.call.stream and live.call.version.id == version and live.origin.state is OriginState.QUEUED:
                live.stage(stage, (at - live.call.arrived) * 1000.0, **detail)

    def _node_seen(self, node: str, instance: str, at: float) -> None:
        if (gone := self._nodes.seen(node, instance, at)) is not None:
            self._node_gone(gone)

    def _node_gone(self, gone: GoneNode) -> None:
        at = time.monotonic()
        log.warning("node gone", node=gone.node, reason=gone.reason)
        self._tabs.node_gone(gone.node, gone.instance)
        for home in self._homes:
            home.node_gone(gone.node, gone.instance, at)
        for live in self._book:
            self._perform(live, live.origin.node_gone(gone.node, gone.instance, gone.reason, at))
        self._homes.stir_all()
