"""The agent: drives the parts of one node, from its first report to its last.

The bus calls the handlers from its read loop; guests call back from the event loop. No handler waits, so a call costs
no task and no timer.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import structlog

from pilotlight_core.bus import BusDown, BusError
from pilotlight_core.host.metrics import LoopWatch
from pilotlight_core.links import TO_AGENT, AcceptedEnds, Link, LinkCaller, unix_link
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.call_messages import Cancel, Ended, Outcome, Reconcile, Run, Window
from pilotlight_core.model.messages.device_commands import DeviceCommand
from pilotlight_core.model.messages.link_messages import LinkHello
from pilotlight_core.model.messages.node_messages import ContainerCommand, KeepBlanks, Prefetch
from pilotlight_core.model.messages.scheduling import CreditsWanted
from pilotlight_runtime.calls.gateway_links import MOST_LINKS
from pilotlight_runtime.calls.origin_frames import RETRY_S
from pilotlight_runtime.containers.containers import CallDispatcher
from pilotlight_runtime.node.agent_metrics import AgentMetrics
from pilotlight_runtime.node.agent_parts import AgentDependencies, AgentParts, build_parts, open_records
from pilotlight_runtime.node.layout_keeper import LayoutKeeper

log = structlog.get_logger(__name__)

SWEEP_S = 0.02
"""The shortest time between two looks at the limits of calls."""
QUIET_SWEEP_S = 0.1
"""The longest: of a call that comes meanwhile the limit is seen so late at most. Each look wakes the process."""
BEAT_S = 1.0
END_S = 1.5
"""For each later step of the end: exit hooks, the last usage, the last log lines."""
STEPS = 7
"""Of the end that have a bound: where the node is taken away, each has its part of the time left."""


@asynccontextmanager
async def open_agent(needs: AgentDependencies) -> AsyncIterator[Agent]:
    """An agent that is ready to `run`; what it has started is cancelled when the block ends.

    Raises:
        OSError: if its files cannot be made.
    """
    layouts = LayoutKeeper(needs.bus, needs.identity.node, needs.devices)
    await layouts.restore()
    async with open_records(needs.folders) as records:
        try:
            async with asyncio.TaskGroup() as group:
                yield Agent(needs, build_parts(needs, group, records), layouts, group)
                raise _Over
        except* _Over:
            pass


class Agent:
    def __init__(
        self, needs: AgentDependencies, parts: AgentParts, layouts: LayoutKeeper, group: asyncio.TaskGroup
    ) -> None:
        self._identity = needs.identity
        self._bus = needs.bus
        self._devices = needs.devices
        self._drain_s = needs.drain_s
        self._parts = parts
        self._layouts = layouts
        self._group = group
        self._folder = needs.links
        self._plain_links, self._ca_file = needs.plain_links, needs.ca_file
        self._calls = CallDispatcher(parts.containers, parts.calls)
        self._ends = AcceptedEnds(parts.calls.links, self._on_group, MOST_LINKS)
        parts.calls.links.ended = self._on_link_closed
        self.loop_watch = LoopWatch(time.monotonic(), every_s=SWEEP_S)
        self.metrics = AgentMetrics(parts)
        self.up = asyncio.Event()
        """Set when it takes commands."""

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set, then end in order.

        Raises:
            BusError: if it cannot subscribe.
        """
        await self._subscribe()
        async with AsyncExitStack() as stack:
            await self._listen(stack)
            await self._serve(stop)

    async def _serve(self, stop: asyncio.Event) -> None:
        parts = self._parts
        loops = (
            self._sweep(),
            self._beat(),
            self._resend(),
            self._watch_bus(),
            parts.pools.run(parts.containers),
            parts.ways_out.run(),
            parts.builders_out.run(),
            parts.logs.run(),
            parts.metering.run(),
            parts.reporter.run(),
            self._layouts.run(),
            parts.weights.run(),
            parts.erased.run(),
            parts.notices.run(stop),
            parts.prefetcher.run(),
            self._devices.watch(self._on_devices_changed),
        )
        running = [self._group.create_task(loop) for loop in loops]
        self._report_unstarted()
        parts.reporter.send()
        self.up.set()
        await stop.wait()
        await self._end(running)

    def check_integrity(self) -> None:
        """Raise AssertionError if a slot, a slice or a nanosecond is counted twice or not at all."""
        self._parts.check_integrity()

    async def _subscribe(self) -> None:
        me, origins = self._identity, self._parts.calls.origins
        await self._bus.subscribe(origins.subject, origins.on_notice)
        await self._bus.subscribe(subjects.control(me.region, me.node), self._on_control)
        await self._bus.subscribe(subjects.run(me.region, me.node, me.instance), self._on_run)
        await self._bus.subscribe(subjects.command(me.region, me.node), self._on_command)
        await self._bus.subscribe(subjects.credits_wanted(me.region), self._on_credits_wanted)
        await self._bus.subscribe(self._parts.locks.subject, self._parts.locks.on_question)
        await self._bus.flush()
        self._bus.on_reconnect.append(self._on_reconnect)

    async def _listen(self, stack: AsyncExitStack) -> None:
        if self._folder is None:
            return
        me, loop = self._identity, asyncio.get_running_loop()
        stack.callback(self._ends.close_all, "the agent is over")
        make = partial(unix_link, self._ends, TO_AGENT, loop, keeps_unheard=True)
        try:
            await stack.enter_async_context(self._folder.listening(me.node, me.instance, make))
        except OSError as error:
            log.warning("no links on this machine: its gateways use the bus", error=str(error))
        caller = LinkCaller(
            self._ends, partial(Link, self._ends, TO_AGENT, loop, keeps_unheard=True), self._group.create_task,
            node=me.node, instance=me.instance, plain=self._plain_links, ca_file=self._ca_file,
        )  # fmt: skip
        await self._bus.subscribe(subjects.link_offers(me.region, me.node, me.instance), caller.on_offer)

    def _report_unstarted(self) -> None:
        """Report the former agent's unstarted calls to their origins, before its end is known there."""
        left_behind = self._parts.calls.waiting.left_behind
        for call in left_behind:
            ended = Ended(
                call_id=call.call_id,
                grant_number=call.grant_number,
                container=call.container,
                outcome=Outcome.DIED,
                started=False,
                reason="its node's agent was killed before the call had started",
            )
            self._parts.calls.origins.send(call.gateway, ended)
        if left_behind:
            log.info("calls that the agent before had not started go elsewhere", calls=len(left_behind))

    # -- messages of the bus ------------------------------------------------------------------------------------

    def _on_run(self, _subject: str, message: Any, _reply: str) -> None:
        if type(message) is Run:
            at = time.monotonic()
            self._calls.on_run(message, at, self.loop_watch.received_at(at))

    def _on_group(self, messages: list[Any]) -> None:
        """A gateway's messages have come over its link."""
        at = time.monotonic()
        received_at = self.loop_watch.received_at(at)
        for message in messages:
            try:
                if type(message) is Run:
                    self._calls.on_run(message, at, received_at)
                elif not isinstance(message, LinkHello):
                    self._calls.on_control(message, at)
            except Exception:
                log.exception("what came over a link went wrong; the others go on")

    def _on_link_closed(self) -> None:
        self._publish_credits(time.monotonic())  # the bus is the way of its gateway again

    def _on_control(self, _subject: str, message: Any, _reply: str) -> None:
        if isinstance(message, Cancel | Window | Reconcile):
            self._calls.on_control(message, time.monotonic())

    def _on_command(self, _subject: str, message: Any, reply: str) -> None:
        if not isinstance(message, ContainerCommand | DeviceCommand | KeepBlanks | Prefetch):
            return
        answer = self._parts.containers.command(message)
        if reply:
            with contextlib.suppress(BusError):
                self._bus.publish_nowait(reply, answer)

    def _on_credits_wanted(self, _subject: str, message: Any, _reply: str) -> None:
        if isinstance(message, CreditsWanted):
            self._publish_credits(time.monotonic())

    def _on_devices_changed(self) -> None:
        self._parts.slices.sync()
        self._layouts.changed()
        self._parts.reporter.due.set()

    async def _on_reconnect(self) -> None:
        self.loop_watch.mark_fresh()  # what had been waiting was lost with the connection
        at = time.monotonic()
        self._calls.resend_frames(at)
        self._publish_credits(at)
        self._parts.reporter.send()

    def _publish_credits(self, at: float) -> None:
        self._parts.calls.credits.publish_all(self._parts.containers, at)

    # -- loops --------------------------------------------------------------------------------------------------

    async def _sweep(self) -> None:
        while True:
            due_s = _sweep_pause(self._parts.containers.next_limit_at(at := time.monotonic()) - at)
            await asyncio.sleep(due_s)
            at = time.monotonic()
            if self.loop_watch.tick(at, due_s):
                self._group.create_task(self._refresh())
            self._parts.containers.check_limits(at)

    async def _refresh(self) -> None:
        with contextlib.suppress(BusError):  # while disconnected: `_on_reconnect` does it instead
            await self._bus.flush()
            self.loop_watch.mark_fresh()

    async def _beat(self) -> None:
        while True:
            at = time.monotonic()
            self._parts.containers.tick(at)
            self._publish_credits(at)
            self._ends.tick()
            self._parts.reporter.send()
            self._parts.reporter.publish_work(self._parts.work)
            await asyncio.sleep(BEAT_S)

    async def _resend(self) -> None:
        while True:
            await asyncio.sleep(RETRY_S)
            self._calls.resend_frames(time.monotonic())

    async def _watch_bus(self) -> None:
        await self._bus.closed.wait()
        raise BusDown("The connection to the bus is gone for good: this process must be started anew.")

    # -- the end ------------------------------------------------------------------------------------------------

    async def _end(self, running: list[asyncio.Task[None]]) -> None:
        """End in steps, each within its bound; together they take less than a supervisor waits."""
        log.info("the agent ends")
        parts = self._parts
        # 1. Nothing new: binds are refused, containers drain, and those left over are ended.
        bound_s = parts.notices.bound_s
        await parts.containers.drain_all(drain_s=bound_s(self._drain_s, STEPS), end_s=bound_s(END_S, STEPS))
        # 2. The loops, and the blanks, which no container needs any more.
        for task in running:
            task.cancel()
        await asyncio.wait(running)
        await self._bounded("blanks", parts.pools.close())
        # 3. The last usage and the last lines of logs. What the bus does not take, the next agent finds on disk.
        await parts.metering.write()
        await self._bounded("usage", parts.metering.ship())
        await self._bounded("logs", parts.logs.ship())
        # 4. The last report, so that others need not wait for the node's silence: after all that was said over links.
        self._ends.close_all("the agent ends")
        parts.reporter.send(stopped=True)
        await self._bounded("last word", self._bus.flush())
        await self._bounded("bodies", parts.calls.bodies.close())

    async def _bounded(self, name: str, step: Coroutine[Any, Any, Any]) -> None:
        try:
            async with asyncio.timeout(self._parts.notices.bound_s(END_S, STEPS)):
                await step
        except (TimeoutError, BusError) as error:
            log.warning("a step of the end was cut short", step=name, error=str(error))


def _sweep_pause(seconds: float) -> float:
    """In how many seconds to look at the limits of calls, the next of which is reached in so many."""
    return min(max(SWEEP_S, seconds), QUIET_SWEEP_S)


class _Over(Exception):
    """The agent has ended in order."""
