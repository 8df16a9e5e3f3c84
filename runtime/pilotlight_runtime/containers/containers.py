"""The containers of a node: the slices they are on, the controller's commands, and the dispatch of calls."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

import structlog

from pilotlight_core.model.devices import DeviceReport
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.messages.call_messages import (
    Cancel,
    Ended,
    Outcome,
    Reconcile,
    Refusal,
    Refused,
    Run,
    Window,
)
from pilotlight_core.model.messages.device_commands import DeviceCommand
from pilotlight_core.model.messages.node_messages import (
    GIVING_WAY,
    Bind,
    BlankSize,
    CommandReply,
    ContainerCommand,
    ContainerState,
    Drain,
    EndedContainer,
    HostMemory,
    HostShare,
    Keep,
    KeepBlanks,
    Park,
    Prefetch,
    SliceReport,
    Stop,
    Unpark,
)
from pilotlight_runtime.calls.call_runner import CallRunner
from pilotlight_runtime.calls.credits import REPEAT_GONE_S, Credits
from pilotlight_runtime.calls.node_calls import NodeCalls
from pilotlight_runtime.calls.slot_table import AcceptedCall
from pilotlight_runtime.containers.container import Container
from pilotlight_runtime.containers.host_budget import HostBudget
from pilotlight_runtime.containers.parking import NodeParking
from pilotlight_runtime.containers.start_counts import StartCounts
from pilotlight_runtime.devices.cpu_slots import usable_cores
from pilotlight_runtime.metering.slices import Slices

log = structlog.get_logger(__name__)

REMEMBERED = 10_000
"""Ids of former containers, so that a late or repeated bind does not bring one back."""
ENDED_AT_MOST = 4_096
"""Ended containers in a report."""
LAST_FRAME_LOST = "its last frame was lost"

MakeContainer = Callable[[Bind, SliceReport], Container]


class Containers:
    """Binds containers to slices and runs them in `group`.

    `many_tenants`: the node's sandboxes keep tenants apart. `changed` is called when a report is due.
    """

    def __init__(
        self,
        *,
        slices: Slices,
        host: HostBudget,
        parking: NodeParking,
        make: MakeContainer,
        publisher: Credits,
        group: asyncio.TaskGroup,
        many_tenants: bool,
        changed: Callable[[], None],
        keep_blanks: Callable[[Sequence[BlankSize]], None] = lambda _: None,
        prefetch: Callable[[Prefetch], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.controller_epoch = 0
        """The highest epoch of a command so far."""
        self.draining = False
        """Whether binds are refused."""
        self._slices = slices
        self._host = host
        self._parking = parking
        self._make = make
        self._credits = publisher
        self._group = group
        self._many_tenants = many_tenants
        self._tenant = ""
        self._changed = changed
        self._keep_blanks = keep_blanks
        self._prefetch = prefetch
        self._containers: dict[str, Container] = {}
        self._cores = usable_cores()
        self._past: deque[str] = deque(maxlen=REMEMBERED)
        self._ended: deque[tuple[EndedContainer, float]] = deque(maxlen=ENDED_AT_MOST)
        self._clock = clock
        self.starts = StartCounts()

    def __iter__(self) -> Iterator[Container]:
        return iter(list(self._containers.values()))

    def runners(self) -> Iterator[CallRunner]:
        """The calls of each container that has been ready."""
        return (container.serving.runner for container in self if container.serving is not None)

    # -- state --------------------------------------------------------------------------------------------------

    def get(self, container: str) -> Container | None:
        return self._containers.get(container)

    @property
    def cpu_slots(self) -> int:
        """All CPU slots, free or taken."""
        return self._slices.cpu_slots

    @property
    def needs_processors(self) -> bool:
        """Whether containers need the processors more than blanks: one starts, or has just, or so many have calls."""
        calling = sum(not runner.is_idle for runner in self.runners())
        return 2 * calling >= self._cores or any(each.is_starting or each.is_fresh for each in self)

    @property
    def host(self) -> HostShare:
        """What there is to promise of the host, taken or not."""
        return self._host.host

    @property
    def memory(self) -> HostMemory:
        """What there is for parked containers and weights, and who has it."""
        return self._parking.warm.report

    def ended(self, at: float) -> tuple[EndedContainer, ...]:
        """Those of the last `REPEAT_GONE_S`."""
        return tuple([one for one, since in self._ended if at - since < REPEAT_GONE_S])

    def slices(self) -> tuple[SliceReport, ...]:
        return self._slices.reports()

    def devices(self) -> tuple[DeviceReport, ...]:
        return self._slices.devices()

    # -- the controller's commands ------------------------------------------------------------------------------

    def command(self, command: ContainerCommand | DeviceCommand | KeepBlanks | Prefetch) -> CommandReply:
        """Obey a command, or reply why not; one of an older epoch than the highest seen is refused."""
        reason = "stale_epoch"
        if command.epoch >= self.controller_epoch:
            self.controller_epoch = command.epoch
            if isinstance(command, DeviceCommand):
                reason = self._cut(command)
            elif isinstance(command, KeepBlanks):
                reason = ""
                self._keep_blanks(command.sizes)
                self._changed()
            elif isinstance(command, Prefetch):
                reason = ""
                self._prefetch(command)
            else:
                reason = self._bind(command) if isinstance(command, Bind) else self._notify(command)
        return CommandReply(ok=not reason, reason=reason, epoch=self.controller_epoch)

    def _cut(self, command: DeviceCommand) -> str:
        reason = "draining" if self.draining else self._slices.command(command)
        if reason == "slice_taken" and (parked := self._slices.parked_under(command)):
            # Never under them: they give way, and are gone when the command comes again.
            self._give_way(parked, "its GPU is cut anew")
            reason = "changing"
        self._changed()
        return reason

    def _bind(self, bind: Bind) -> str:
        known = self._containers.get(bind.container)
        if known is not None:
            return "" if known.version == bind.version and known.slice == bind.slice else "container_taken"
        if refusal := self._refusal(bind):
            return refusal
        if in_the_way := self._slices.in_the_way(bind.slice, bind.tenant):
            self._give_way(in_the_way, "another tenant needs the GPU where it was parked")
            return GIVING_WAY
        part = self._slices.take(bind.slice, bind.container, bind.tenant, neighbours=bind.neighbours)
        self._host.take(bind.container, bind.host)
        container = self._make(bind, part)
        self._tenant = bind.tenant
        self._containers[bind.container] = container
        self._past.append(bind.container)
        self._group.create_task(self._run_container(container))
        self._credits.publish_soon(container)
        self._changed()
        return ""

    def _give_way(self, parked: Iterable[str], reason: str) -> None:
        for one in parked:
            self._containers[one].stop(reason)

    def _refusal(self, bind: Bind) -> str:
        try:
            check_name(bind.container, "container")
            check_name(bind.tenant, "tenant")
        except BadInput:
            return "bad_name"
        if bind.container in self._past:
            return "gone"
        if self.draining:
            return "draining"
        if refusal := self._slices.refusal(bind.slice, bind.tenant, neighbours=bind.neighbours):
            return refusal
        if refusal := self._host.refusal(bind.host):
            return refusal
        return "other_tenant" if self._tenant not in ("", bind.tenant) and not self._many_tenants else ""

    def _notify(self, command: Drain | Stop | Keep | Park | Unpark) -> str:
        container = self._containers.get(command.container)
        if container is None:
            return "gone"
        if isinstance(command, Park | Unpark):
            return self._move(container, command)
        if isinstance(command, Drain):
            container.drain(command.within_ms / 1000, command.reason)
        elif isinstance(command, Keep):
            container.keep(command.purpose)
        else:
            container.stop(command.reason)
        self._changed()
        return ""

    def _move(self, container: Container, command: Park | Unpark) -> str:
        if self.draining:
            return "draining"
        if isinstance(command, Park):
            reason = container.park(command.likelihood)
        else:
            reason = container.unpark(command.slice, command.purpose)
        self._changed()
        return reason

    async def _run_container(self, container: Container) -> None:
        try:
            await container.run()
        except Exception:
            log.exception("a container's life went wrong", container=container.id)
        finally:
            self.starts.note(container)
            del self._containers[container.id]
            self._ended.append((_ended(container), self._clock()))
            self._parking.end(container)
            self._changed()

    # -- the clock, and the end ---------------------------------------------------------------------------------

    def next_limit_at(self, at: float) -> float:
        """When `check_limits` may have something to do, as far as is known."""
        serving = [container.serving for container in self._containers.values() if container.serving is not None]
        return min([each.next_limit_at(at) for each in serving], default=math.inf)

    def check_limits(self, at: float) -> None:
        for container in self._containers.values():
            self._guarded(container, container.check_limits, at)

    def tick(self, at: float) -> None:
        for container in self._containers.values():
            self._guarded(container, container.tick, at)
            self.starts.note(container)

    @staticmethod
    def _guarded(container: Container, step: Callable[[float], None], at: float) -> None:
        """Run a container's step; a bug in it ends that container, not the node."""
        try:
            step(at)
        except Exception:
            log.exception("a container's clock went wrong", container=container.id)
            container.stop("a mistake of the platform")

    def preempt(self, within_s: float, reason: str) -> None:
        """The node is taken away: nothing new from now on, and no call goes on for longer than `within_s`."""
        self.draining = True
        for container in self:
            try:
                container.preempt(within_s, reason)
            except Exception:
                log.exception("a container's drain went wrong", container=container.id)
                container.stop("a mistake of the platform")
        self._changed()

    def resume(self) -> None:
        """The node stays after all: binds are taken again. Containers that drain end, once their calls have."""
        self.draining = False
        for container in self:
            container.withdraw_preemption()
        self._changed()

    async def wait_empty(self) -> None:
        """Until every container is gone that there is now."""
        for container in self:
            await container.wait_gone()

    async def drain_all(self, *, drain_s: float, end_s: float) -> None:
        """Let every container end its calls within `drain_s`, then stop the rest."""
        self.draining = True
        self._changed()
        for container in self:
            container.drain(drain_s, "the node's agent stops")
        if await self._wait_all_gone(drain_s + end_s):
            return
        for container in self:
            container.stop("the node's agent stops")
        await self._wait_all_gone(end_s)

    async def _wait_all_gone(self, within_s: float) -> bool:
        try:
            async with asyncio.timeout(within_s):
                await self.wait_empty()
        except TimeoutError:
            return False
        return True

    def check_integrity(self) -> None:
        """Raise AssertionError if a slice or a part of the host is counted twice or has no container."""
        self._slices.check_integrity()
        self._host.check_integrity({c.id for c in self._containers.values() if c.slice})
        if {c.slice: c.id for c in self._containers.values() if c.slice} != self._slices.held:
            raise AssertionError("slices and containers disagree")
        if not self._slices.parked <= {c.id for c in self._containers.values() if not c.slice}:
            raise AssertionError("a container is on a slice, and parked")
        self._parking.warm.check_integrity({c.id for c in self._containers.values() if c.parking.has_memory})
        gone = [c.id for c in self._containers.values() if c.state is ContainerState.GONE and c.held]
        if gone:
            raise AssertionError(f"{gone} are gone and hold calls")


log = structlog.get_logger(__name__)


class CallDispatcher:
    """Gives what origins send about calls to the node's containers. `at` is the present monotonic instant."""

    def __init__(self, containers: Containers, calls: NodeCalls) -> None:
        self._containers = containers
        self._calls = calls

    def on_run(self, run: Run, at: float, received_at: float) -> None:
        """Take a granted call, or refuse it; it cannot have come before `received_at`."""
        container = self._containers.get(run.container)
        outcome = self._calls.slots.accept(run, at, received_at)
        if isinstance(outcome, AcceptedCall):
            serving = container.serving if container is not None else None
            if serving is not None and not serving.runner.holds(run.call_id):
                serving.add(outcome, at)
                return
            self._calls.slots.release(run.call_id, run.grant_number)
            # Held: an abandoned run of the same call has not ended yet.
            refusal = Refusal.GONE if container is None else Refusal.NO_SLOT
        else:
            refusal = outcome
        frame = Refused(call_id=run.call_id, grant_number=run.grant_number, container=run.container, reason=refusal)
        self._calls.origins.send(run.gateway, frame)
        if container is not None:
            self._calls.credits.publish_soon(container)  # its home's view of it was old

    def on_control(self, message: Cancel | Window | Reconcile, at: float) -> None:
        if isinstance(message, Window):
            for runner in self._containers.runners():
                runner.on_window(message.call_id, message.upto, at, message.movable)
            self._calls.origins.on_window(message.call_id, message.upto, again=message.again)
        elif isinstance(message, Cancel):
            for call in self._calls.slots.cancel(message.call_id):
                self._cancel(call, message.reason, at)
        else:
            self._reconcile(message, at)

    def resend_frames(self, at: float) -> None:
        """Send undelivered last frames again, and cancel the calls of gateways that are gone."""
        for gateway in self._calls.origins.sweep(at):
            log.warning("a gateway listens no more; its calls are cancelled", gateway=gateway)
            for runner in self._containers.runners():
                for call_id in runner.calls_of(gateway):
                    runner.cancel(call_id, f"the gateway {gateway} is gone", at)

    def _reconcile(self, message: Reconcile, at: float) -> None:
        outcome = self._calls.slots.reconcile(message, at)
        for orphan in outcome.orphans:
            self._cancel(orphan, "its gateway does not know it", at)
        for past in outcome.released:
            if not self._calls.origins.resend(past.call_id, past.grant_number):
                ended = Ended(
                    call_id=past.call_id,
                    grant_number=past.grant_number,
                    container="",
                    outcome=Outcome.DIED,
                    started=past.was_started,
                    reason=LAST_FRAME_LOST,
                )
                self._calls.origins.send(message.gateway, ended)

    def _cancel(self, call: AcceptedCall, reason: str, at: float) -> None:
        container = self._containers.get(call.run.container)
        if container is not None and container.serving is not None:
            container.serving.runner.cancel(call.call_id, reason, at)


def _ended(container: Container) -> EndedContainer:
    serving = container.serving
    return EndedContainer(
        id=container.id, version=container.version, tenant=container.tenant, was_ready=serving is not None,
        unfit=serving is not None and serving.is_unfit,
    )  # fmt: skip
