"""The agent: what one node does, put together. Everything lives in one task group; `run` ends when it was told to.

The bus calls the handlers (`_on_run`, `_on_control`, `_on_command`) from its read loop; guests call back from the event
loop. Neither waits for anything, so a call costs no task and no timer.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import structlog

from pilotlight_core.bus import Bus, BusDown, BusError
from pilotlight_core.host.blobs import BlobStore
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.agent_messages import (
    Bind,
    Cancel,
    Drain,
    Ended,
    Outcome,
    Reconcile,
    Run,
    Stop,
    Window,
)
from pilotlight_core.model.messages.device_commands import DeviceCommand
from pilotlight_core.model.messages.scheduling import CreditsWanted
from pilotlight_runtime.calls.credits import Credits
from pilotlight_runtime.calls.origin_frames import RETRY_S, OriginSender
from pilotlight_runtime.calls.remote_bodies import BodyTransfers
from pilotlight_runtime.calls.slot_table import SlotTable
from pilotlight_runtime.calls.waiting_calls import WaitingCalls
from pilotlight_runtime.containers.base_environment import BaseEnvironment
from pilotlight_runtime.containers.blank_pool import BlankPool
from pilotlight_runtime.containers.container_services import NodeServices
from pilotlight_runtime.containers.containers import Containers
from pilotlight_runtime.containers.file_cache import FileCache
from pilotlight_runtime.containers.staging import ManifestVerifier, Stager
from pilotlight_runtime.devices.device_port import Devices
from pilotlight_runtime.logs.log_shipper import LogShipper
from pilotlight_runtime.metering.slices import Slices
from pilotlight_runtime.metering.usage_log import UsageLog
from pilotlight_runtime.metering.usage_metering import Metering, boot_id
from pilotlight_runtime.metering.work_log import WorkLog
from pilotlight_runtime.node.agent_folders import NodeFolders
from pilotlight_runtime.node.layout_keeper import LayoutKeeper
from pilotlight_runtime.node.node_reports import NodeIdentity, Reporter
from pilotlight_runtime.node.stall_watch import StallWatch
from pilotlight_runtime.sandbox.sandbox_port import Launcher

log = structlog.get_logger(__name__)

SWEEP_S = 0.02
BEAT_S = 1.0
DRAIN_S = 4.0
"""What running calls get when the agent is told to stop."""
END_S = 1.5
"""And then exit hooks, the last usage, the last log lines: each."""


@dataclass(frozen=True, kw_only=True)
class AgentDependencies:
    """What an agent is made with."""

    identity: NodeIdentity
    bus: Bus
    blobs: BlobStore
    verifier: ManifestVerifier
    launcher: Launcher
    devices: Devices
    base: BaseEnvironment
    folders: NodeFolders
    blanks: int


class Agent:
    """One node."""

    def __init__(self, parts: AgentDependencies) -> None:
        self._parts = parts
        self._bus = parts.bus
        self._stall = StallWatch(time.monotonic())
        self._reporter = Reporter(
            parts.bus,
            parts.identity,
            clock=time.monotonic,
            later=asyncio.get_running_loop().call_later,
        )
        self._layouts = LayoutKeeper(parts.bus, parts.identity.node, parts.devices)
        self.up = asyncio.Event()
        """Set when it takes commands."""

    async def run(self, stop: asyncio.Event) -> None:
        """Be the node until `stop` is set; then end in order.

        Raises:
            BusError: if it cannot subscribe at the start.
        """
        await self._layouts.restore()
        usage_log = await asyncio.to_thread(UsageLog, self._parts.folders.usage, boot_id())
        if usage_log.cut_bytes:
            log.warning("the usage log was torn by a crash", cut_bytes=usage_log.cut_bytes)
        self._waiting = await asyncio.to_thread(WaitingCalls, self._parts.folders.waiting, boot_id())
        try:
            async with asyncio.TaskGroup() as group:
                self._make(group, usage_log)
                await self._subscribe()
                await self._stand(group, stop)
                raise _Over
        except* _Over:
            pass
        finally:
            self._waiting.close()
            await asyncio.to_thread(usage_log.close)

    def check_integrity(self) -> None:
        """Raises AssertionError if a slot, a slice or a nanosecond is counted twice or not at all."""
        self._slots.check_integrity()
        self._containers.check_integrity()
        self._metering.check_integrity()

    # -- making -------------------------------------------------------------------------------------------------

    def _make(self, group: asyncio.TaskGroup, usage_log: UsageLog) -> None:
        parts, me = self._parts, self._parts.identity
        self._slots = SlotTable(instance=me.instance)
        self._origins = OriginSender(
            self._bus,
            me.region,
            f"_PL.{me.node}.{me.instance}",
            clock=time.monotonic,
            vanished=lambda gateway: self._containers.vanished(gateway, time.monotonic()),
        )
        self._credits = Credits(
            self._bus,
            region=me.region,
            node=me.node,
            instance=me.instance,
            epoch_of=self._slots.epoch,
            soon=asyncio.get_running_loop().call_soon,
        )
        self._metering = Metering(
            node=me.node,
            instance=me.instance,
            region=me.region,
            slices=parts.devices.inventory(),
            usage_log=usage_log,
            store=self._bus,
        )
        self._slices = Slices(parts.devices, self._metering)
        self._work = WorkLog()
        self._shipper = LogShipper(self._bus, me.region, me.instance)
        self._bodies = BodyTransfers(group)
        self._pool = BlankPool(
            launcher=parts.launcher,
            base=parts.base,
            folder=parts.folders.sandboxes,
            size=parts.blanks,
            room=lambda: self._containers.cpu_slots,
            starting=lambda: self._containers.any_starting,
            changed=self._reporter.changed,
            group=group,
        )
        self._containers = Containers(
            slices=self._slices,
            services=self._services(),
            group=group,
            many_tenants=parts.launcher.guarantees().many_tenants,
            changed=self._reporter.changed,
        )
        self._reporter.watch(self._containers, self._pool)
        self._group = group

    def _services(self) -> NodeServices:
        parts = self._parts
        return NodeServices(
            stager=Stager(parts.blobs, parts.verifier, FileCache(parts.folders.cache)),
            pool=self._pool,
            devices=parts.devices,
            slots=self._slots,
            origins=self._origins,
            bodies=self._bodies,
            credits=self._credits,
            metering=self._metering,
            shipper=self._shipper,
            waiting=self._waiting,
            work=self._work,
        )

    async def _subscribe(self) -> None:
        me = self._parts.identity
        await self._bus.subscribe(self._origins.subject, self._origins.on_notice)
        await self._bus.subscribe(subjects.control(me.region, me.node), self._on_control)
        await self._bus.subscribe(subjects.run(me.region, me.node, me.instance), self._on_run)
        await self._bus.subscribe(subjects.command(me.region, me.node), self._on_command)
        await self._bus.subscribe(subjects.credits_wanted(me.region), self._on_credits_wanted)
        await self._bus.flush()
        self._bus.on_reconnect.append(self._on_reconnect)

    async def _stand(self, group: asyncio.TaskGroup, stop: asyncio.Event) -> None:
        """Serve until told to stop, then end in order."""
        jobs = (self._sweep, self._beat, self._offer, self._mind_bus)
        runs = (self._pool.run, self._shipper.run, self._metering.run, self._layouts.run)
        standing = [group.create_task(job()) for job in (*jobs, *runs)]
        standing.append(group.create_task(self._parts.devices.watch(self._devices_changed)))
        self._speak_for_the_dead()
        self._reporter.send()
        self.up.set()
        await stop.wait()
        await self._end(standing)

    def _speak_for_the_dead(self) -> None:
        """Tell the origins what the agent before had not started: before they hear that it is gone."""
        for call in self._waiting.former:
            ended = Ended(
                call=call.call,
                grant=call.grant,
                container=call.container,
                outcome=Outcome.DIED,
                started=False,
                reason="its node's agent was killed before the call had started",
            )
            self._origins.tell(call.gateway, ended)
        if self._waiting.former:
            log.info("calls that the agent before had not started go elsewhere", calls=len(self._waiting.former))

    # -- what comes over the bus --------------------------------------------------------------------------------

    def _on_run(self, _subject: str, message: Any, _reply: str) -> None:
        if type(message) is Run:
            at = time.monotonic()
            self._containers.run(message, at, self._stall.received(at))

    def _on_control(self, _subject: str, message: Any, _reply: str) -> None:
        if isinstance(message, Cancel | Window | Reconcile):
            self._containers.control(message, time.monotonic())

    def _on_command(self, _subject: str, message: Any, reply: str) -> None:
        if not isinstance(message, Bind | Drain | Stop | DeviceCommand):
            return
        answer = self._containers.command(message)
        if reply:
            with contextlib.suppress(BusError):
                self._bus.publish_nowait(reply, answer)

    def _on_credits_wanted(self, _subject: str, message: Any, _reply: str) -> None:
        if isinstance(message, CreditsWanted):
            self._credits.repeat(self._containers, time.monotonic())

    def _devices_changed(self) -> None:
        self._slices.sync()
        self._layouts.changed()
        self._reporter.changed()

    async def _on_reconnect(self) -> None:
        self._stall.fresh()  # what had been waiting was lost with the connection
        at = time.monotonic()
        self._origins.sweep(at)
        self._credits.repeat(self._containers, at)
        self._reporter.send()

    # -- what comes with time -----------------------------------------------------------------------------------

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            at = time.monotonic()
            if self._stall.tick(at):
                log.warning("this process stood still", seconds=round(self._stall.longest, 3))
                self._group.create_task(self._refresh())
            self._containers.sweep(at)

    async def _refresh(self) -> None:
        """When a flush comes back, everything that had been waiting before it has been read."""
        with contextlib.suppress(BusError):  # while disconnected: the reconnect says so instead
            await self._bus.flush()
            self._stall.fresh()

    async def _beat(self) -> None:
        while True:
            at = time.monotonic()
            self._containers.second(at)
            self._credits.repeat(self._containers, at)
            self._reporter.send()
            self._reporter.tell_work(self._work)
            await asyncio.sleep(BEAT_S)

    async def _offer(self) -> None:
        while True:
            await asyncio.sleep(RETRY_S)
            self._origins.sweep(time.monotonic())

    async def _mind_bus(self) -> None:
        await self._bus.closed.wait()
        raise BusDown("The connection to the bus is gone for good: this process must be started anew.")

    # -- the end ------------------------------------------------------------------------------------------------

    async def _end(self, standing: list[asyncio.Task[None]]) -> None:
        """Each step has a bound; together they stay below what a supervisor waits."""
        log.info("the agent ends")
        # 1. Nothing new: binds are refused, containers drain, and those that do not come to an end are ended.
        await self._containers.drain_all(drain_s=DRAIN_S, end_s=END_S)
        # 2. Whatever goes on by itself, and the blanks, which nobody needs any more.
        for task in standing:
            task.cancel()
        await asyncio.wait(standing)
        await self._bounded("blanks", self._pool.close())
        # 3. The last usage and the last lines of logs. What the bus does not take, the next agent finds on disk.
        await self._metering.write()
        await self._bounded("usage", self._metering.ship())
        await self._bounded("logs", self._shipper.ship())
        # 4. The last word: everybody knows at once, and need not wait for silence.
        self._reporter.send(stopped=True)
        await self._bounded("last word", self._bus.flush())
        await self._bounded("bodies", self._bodies.close())

    async def _bounded(self, name: str, step: Coroutine[Any, Any, Any]) -> None:
        try:
            async with asyncio.timeout(END_S):
                await step
        except (TimeoutError, BusError) as error:
            log.warning("a step of the end was cut short", step=name, error=str(error))


class _Over(Exception):
    """The agent has ended in order: whatever still runs is cancelled."""
