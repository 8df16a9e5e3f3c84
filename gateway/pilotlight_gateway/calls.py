"""Live calls: the rim around `Origin` and `Home`. It performs their actions over the bus and tells them what happens.

Everything that arrives is handled in the bus's read loop by plain functions, in order; only callers wait. One call
costs one publish, one frame back, and one timer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import structlog

from pilotlight_core.host.bus import NO_RESPONDERS, Bus, BusDown, MessageTooLarge
from pilotlight_core.model import subjects
from pilotlight_core.model.api import CallStatus
from pilotlight_core.model.errors import ContainerDied, PilotlightError, Unavailable
from pilotlight_core.model.ids import new_call_id
from pilotlight_core.model.messages import (
    CallDescriptor,
    Chunk,
    ContainerState,
    Credit,
    Ended,
    Grant,
    NodeReport,
    Reconcile,
    Refused,
    Shortage,
    Started,
)
from pilotlight_gateway.actions import (
    Action,
    Enqueue,
    Fail,
    Finish,
    HandBack,
    Relay,
    Send,
    Settle,
    Stage,
    Tell,
    Withdraw,
    settle,
)
from pilotlight_gateway.budget import Budget
from pilotlight_gateway.call_book import CallBook
from pilotlight_gateway.call_plan import CallPlan
from pilotlight_gateway.call_port import CallEvent, CallResult, CallStatistics, ChunkEvent, PreparedCall
from pilotlight_gateway.fleet_view import FleetView
from pilotlight_gateway.home import Dropped, QueueLimits
from pilotlight_gateway.home_driver import HomeDriver
from pilotlight_gateway.internal import INLINE_BYTES, Bodies
from pilotlight_gateway.live import Live
from pilotlight_gateway.nodes import GoneNode, Nodes
from pilotlight_gateway.origin import Origin, State

WATCH_S = 0.5
"""How often silent nodes are looked for, and agents are told which calls are wanted."""
SILENT_S = 2.0
"""A call that was sent and not heard of for so long is asked for."""
LOST_ANSWER = "The answer was lost between the node and the gateway."

log = structlog.get_logger()


class Calls:
    """The calls whose callers this gateway holds, and the queues that it is home of. The real `CallPort`."""

    def __init__(
        self, bus: Bus, *, region: str, gateway: str, name: str, bodies: Bodies, budget: Budget, limits: QueueLimits
    ) -> None:
        self._bus = bus
        self._region = region
        self._gateway = gateway
        """Of this process alone: whoever speaks to a former process finds nobody."""
        self._bodies = bodies
        self._budget = budget
        self._identity = bus.lease(f"gateway.{gateway}", gateway)
        # The name outlives the process, so that a restarted gateway need not wait for its former self to expire.
        self._lease = bus.lease("home", name)
        self.led = asyncio.Event()
        """Set when the home lease was acquired for the first time."""
        self._book = CallBook()
        self._fleet = FleetView()
        self._nodes = Nodes()
        self._told: set[tuple[str, str]] = set()
        """Agents (node, incarnation) last told of wanted calls: told once more when there are none."""
        self._driver = HomeDriver(
            bus,
            self._lease,
            region=region,
            gateway=gateway,
            limits=limits,
            on_grant=self._granted,
            on_dropped=self._dropped,
        )

    # -- the life of the whole -----------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Listen, lead and watch until the block ends."""
        region, gateway = self._region, self._gateway
        await self._bus.subscribe(subjects.reply(region, gateway), self._on_frame)
        await self._bus.subscribe(subjects.unheard(region, gateway), self._on_unheard)
        await self._bus.subscribe(subjects.credit(region), self._on_credit)
        await self._bus.subscribe(subjects.beat(region), self._on_report)
        await self._bus.subscribe(subjects.shortage(region), self._on_shortage)
        self._bus.on_reconnect.append(self._reconnected)
        await self._identity.acquire()
        async with asyncio.TaskGroup() as tasks:
            loops = [tasks.create_task(self._lead()), tasks.create_task(self._watch())]
            yield
            for loop in loops:
                loop.cancel()
        self._driver.stop()
        await self._lease.release()
        await self._identity.release()

    async def _lead(self) -> None:
        while True:
            await self._lease.acquire()
            self._driver.take_over()
            self.led.set()
            for live in self._book:
                self._perform(live, live.origin.home_changed(self._driver.epoch, time.monotonic()))
            self._driver.stir()
            await self._lease.lost.wait()
            log.warning("home lease lost")

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_S)
            for gone in self._nodes.lost(time.monotonic()):
                self._node_gone(gone)
            self._reconcile()

    def _reconcile(self) -> None:
        """Tell each agent which of its calls are wanted, and ask for the silent ones: frames can be lost."""
        at = time.monotonic()
        wanted: dict[tuple[str, str], dict[str, int]] = {agent: {} for agent in self._told}
        silent: dict[tuple[str, str], dict[str, int]] = {}
        for live in self._book:
            if (grant := live.origin.grant) is not None:
                agent = (grant.node, grant.instance)
                wanted.setdefault(agent, {})[grant.call] = grant.number
                if at - live.heard > SILENT_S:
                    silent.setdefault(agent, {})[grant.call] = grant.number
        self._told = {agent for agent, calls in wanted.items() if calls}
        for agent, calls in wanted.items():
            node, instance = agent
            asked = silent.get(agent, {})
            message = Reconcile(gateway=self._gateway, instance=instance, calls=tuple(calls), grants=asked)
            try:
                self._bus.publish_nowait(subjects.control(self._region, node), message)
            except (BusDown, MessageTooLarge) as error:
                log.warning("not reconciled", node=node, calls=len(calls), error=str(error))

    async def _reconnected(self) -> None:
        self._driver.stir()

    # -- the port ------------------------------------------------------------------------------------------------

    def new_id(self) -> str:
        """A fresh call id; see `CallPort`."""
        if not self._identity.epoch:
            raise Unavailable("This gateway has no identity yet.", code="starting", retry_after=1.0)
        return new_call_id(self._region, self._identity.epoch)

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

    def cancel(self, tenant: str, id: str) -> bool:  # noqa: A002 - the name of the thing in the API
        """Cancel a call; see `CallPort`."""
        live, _ = self._book.find(tenant, id, self._identity.epoch, time.monotonic())
        if live is None or live.origin.state is State.DONE:
            return False
        self._act(live, live.origin.cancel())
        return True

    def status(self, tenant: str, id: str) -> CallStatus:  # noqa: A002
        """How a call is; see `CallPort`."""
        return self._book.find(tenant, id, self._identity.epoch, time.monotonic())[1]

    def containers(self, tenant: str | None) -> list[dict[str, Any]]:
        """The containers that nodes report; see `CallPort`."""
        return self._fleet.containers(tenant, time.monotonic())

    def nodes(self) -> list[dict[str, Any]]:
        """The nodes that report; see `CallPort`."""
        return self._fleet.nodes(time.monotonic())

    def ready(self) -> str:
        """Why no calls can be taken now; see `CallPort`."""
        if not self._bus.connected:
            return "not connected to the bus"
        return "" if self._driver.home is not None else "no home lease yet"

    def statistics(self) -> CallStatistics:
        """How it is, at once."""
        at = time.monotonic()
        home = self._driver.home
        told = home.statistics(at) if home else None
        reports = self._fleet.reports(at)
        return CallStatistics(
            queued=told.queued if told else 0,
            oldest_ms=told.oldest_ms if told else 0.0,
            running=sum(1 for live in self._book if live.origin.grant is not None),
            containers=self._fleet.by_state(at),
            nodes=len(reports),
            blanks=sum(sum(report.blanks.values()) for report in reports),
        )

    # -- one call ------------------------------------------------------------------------------------------------

    def _begin(self, call: PreparedCall) -> Live:
        at = time.monotonic()
        spec, version = call.version.spec, call.version
        inline = len(call.input) <= INLINE_BYTES
        plan = CallPlan(
            id=call.id,
            tenant=call.tenant,
            version=version.id,
            function=f"{version.tenant}:{version.app}.{version.function}",
            method=call.method.name,
            priority=call.priority,
            gateway=self._gateway,
            arrived=call.arrived,
            deadline=call.deadline,
            idempotent=spec.idempotent,
            retries=spec.retries,
            generator=call.method.mode == "generator",
            stages=call.stream,
            gateway_ms=call.gateway_ms,
            input=call.input if inline else b"",
            traceparent=call.traceparent,
        )
        answer: asyncio.Future[CallResult] = asyncio.get_running_loop().create_future()
        live = Live(call=call, origin=Origin(plan, at), answer=answer, budget=self._budget)
        self._book.enter(live)
        self._act(live, live.origin.begin(at))
        return live

    def _end(self, live: Live) -> None:
        if live.origin.state is not State.DONE:
            self._act(live, live.origin.cancel("The caller went away."))
        self._close_bodies(live)
        live.release()
        self._book.leave(live, time.monotonic())

    def _act(self, live: Live, actions: Iterable[Action]) -> None:
        """Perform what an origin wants, then let the home see what that made possible."""
        self._perform(live, actions)
        self._driver.stir()

    def _perform(self, live: Live, actions: Iterable[Action]) -> None:
        for action in actions:
            match action:  # the first four are a warm call's
                case Enqueue():
                    self._enqueue(live, action.call)
                case Send():
                    self._send(live, action)
                case Settle():
                    self._settle(action)
                case Finish():
                    self._finish(live, action)
                case Relay():
                    self._relay(live, action)
                case Tell():
                    self._tell(action)
                case Fail():
                    live.fail(action.error)
                case Stage():
                    live.stage(action.name, action.ms)
                case HandBack() | Withdraw():
                    self._take_back(action)
        self._set_timer(live)

    def _enqueue(self, live: Live, call: CallDescriptor) -> None:
        if (home := self._driver.home) is None:
            return  # an origin that waits repeats itself, and says it anew to the next home
        try:
            home.enqueue(call, time.monotonic())
        except PilotlightError as error:
            self._perform(live, live.origin.refused_entry(error))

    def _take_back(self, action: HandBack | Withdraw) -> None:
        if (home := self._driver.home) is None:
            return
        match action:
            case HandBack():
                home.refused(action.call, action.container, action.reason, action.epoch, time.monotonic())
            case Withdraw(call_id):
                home.cancel(call_id)

    def _settle(self, action: Settle) -> None:
        if (home := self._driver.home) is not None:
            home.done(
                action.call,
                action.container,
                action.number,
                time.monotonic(),
                cost=action.cost,
                frees=action.frees,
            )

    def _send(self, live: Live, action: Send) -> None:
        run, data = action.run, live.call.input
        self._close_bodies(live)
        live.heard = time.monotonic()
        live.place = self._bodies.expect(live.call.tenant)
        if len(data) > INLINE_BYTES:
            live.body = self._bodies.offer(data)
        run = msgspec.structs.replace(run, body=live.body, answer=live.place)
        reply = subjects.unheard(self._region, self._gateway, run.call, run.grant)
        try:
            self._bus.publish_nowait(subjects.run(self._region, action.node, action.instance), run, reply=reply)
        except BusDown:
            self._perform(live, live.origin.no_responders(run.grant, time.monotonic()))

    def _close_bodies(self, live: Live) -> None:
        self._bodies.withdraw(live.body)
        self._bodies.withdraw(live.place)
        live.body = live.place = None

    def _tell(self, action: Tell) -> None:
        try:
            self._bus.publish_nowait(subjects.control(self._region, action.node), action.message)
        except BusDown:
            log.debug("not told", node=action.node)  # an agent drops what nobody listens to by itself

    def _relay(self, live: Live, action: Relay) -> None:
        try:
            live.chunk(action.seq, action.data)
        except Unavailable as error:
            live.fail(error)
            self._perform(live, live.origin.cancel())

    def _finish(self, live: Live, action: Finish) -> None:
        output: bytes | None = action.output
        if action.answer_size:
            output = self._bodies.answer(live.place)
        if output is None:
            live.fail(ContainerDied(LOST_ANSWER))
            return
        result = CallResult(
            output=output,
            spent=action.spent,
            stages=action.stages,
            cold_start=action.cold_start,
            attempts=action.attempts,
            container=action.container,
            batch_size=action.spent.batch_size if action.spent else 1,
        )
        live.finish(result)

    def _set_timer(self, live: Live) -> None:
        if live.origin.state is State.DONE:
            if live.timer is not None:
                live.timer.cancel()
            return
        wake = live.origin.wake_at
        if live.timer is None or wake < live.timer.when() - 0.002:
            if live.timer is not None:
                live.timer.cancel()
            loop = asyncio.get_running_loop()
            live.timer = loop.call_later(max(0.0, wake - time.monotonic()), self._tick, live)

    def _tick(self, live: Live) -> None:
        live.timer = None
        self._act(live, live.origin.tick(time.monotonic()))

    # -- what arrives --------------------------------------------------------------------------------------------

    def _granted(self, grant: Grant, at: float) -> None:
        live = self._book.get(grant.call)
        if live is None:
            self._settle(Settle(call=grant.call, container=grant.container, number=grant.number))
        else:
            self._perform(live, live.origin.granted(grant, at))

    def _dropped(self, dropped: Dropped) -> None:
        if (live := self._book.get(dropped.call)) is not None:
            self._perform(live, live.origin.dropped(dropped))

    def _on_frame(self, _: str, message: object, __: str) -> None:
        if not isinstance(message, Refused | Started | Chunk | Ended):
            return
        live = self._book.get(message.call)
        if live is not None:
            live.heard = at = time.monotonic()
            self._act(live, live.origin.frame(message, at))
        elif isinstance(message, Ended):
            self._settle(settle(message))
            self._driver.stir()

    def _on_unheard(self, subject: str, message: object, _: str) -> None:
        if message is not NO_RESPONDERS:
            return
        call, grant = subject.rsplit(".", 2)[1:]
        if (live := self._book.get(call)) is not None:
            self._act(live, live.origin.no_responders(int(grant), time.monotonic()))

    def _on_credit(self, _: str, message: object, __: str) -> None:
        if not isinstance(message, Credit):
            return
        at = time.monotonic()
        self._node_seen(message.node, message.instance, at)
        if (home := self._driver.home) is not None:
            home.credit(message, at)
        if message.state is ContainerState.GONE:
            reason = message.reason or "its container is gone"
            for live in self._book:
                self._perform(live, live.origin.container_gone(message.container, reason, at))
        elif message.state is not ContainerState.READY:
            self._tell_waiting(message.version, message.state.value, at, **message.timeline)
        self._driver.stir()

    def _on_report(self, _: str, message: object, __: str) -> None:
        if not isinstance(message, NodeReport):
            return
        at = time.monotonic()
        self._fleet.on_report(message, at)
        if message.stopped:
            if (gone := self._nodes.stopped(message.node, message.instance)) is not None:
                self._node_gone(gone)
        else:
            self._node_seen(message.node, message.instance, at)

    def _on_shortage(self, _: str, message: object, __: str) -> None:
        if not isinstance(message, Shortage):
            return
        at = time.monotonic()
        if (home := self._driver.home) is not None:
            home.shortage(message, at)
        self._tell_waiting(message.version, "waiting", at, reason=message.reason)
        self._driver.stir()

    def _tell_waiting(self, version: str, stage: str, at: float, /, **detail: Any) -> None:
        for live in self._book:
            if live.call.stream and live.call.version.id == version and live.origin.state is State.QUEUED:
                live.stage(stage, (at - live.call.arrived) * 1000.0, **detail)

    def _node_seen(self, node: str, instance: str, at: float) -> None:
        if (gone := self._nodes.seen(node, instance, at)) is not None:
            self._node_gone(gone)

    def _node_gone(self, gone: GoneNode) -> None:
        at = time.monotonic()
        log.warning("node gone", node=gone.node, reason=gone.reason)
        if (home := self._driver.home) is not None:
            home.node_gone(gone.node, gone.instance, at)
        for live in self._book:
            self._perform(live, live.origin.node_gone(gone.node, gone.instance, gone.reason, at))
        self._driver.stir()
