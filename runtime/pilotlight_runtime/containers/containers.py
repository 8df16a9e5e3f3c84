"""The containers of a node: who is on which slice, what the controller may command, and where a granted call goes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator

import structlog

from pilotlight_core.model.devices import DeviceReport
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.messages.agent_messages import (
    Bind,
    Cancel,
    CommandReply,
    ContainerCommand,
    ContainerState,
    Drain,
    Ended,
    Outcome,
    Reconcile,
    Refusal,
    Refused,
    Run,
    SliceReport,
    Window,
)
from pilotlight_core.model.messages.device_commands import DeviceCommand
from pilotlight_runtime.containers.container import Container
from pilotlight_runtime.containers.container_services import NodeServices
from pilotlight_runtime.metering.slices import Slices

log = structlog.get_logger(__name__)

REMEMBERED = 10_000
"""Containers that are gone and whose ids are known still: a late or repeated bind must not bring them back."""
LOST = "its last frame was lost"


class Containers:
    """`many_tenants` says whether the node's sandbox may hold several; `changed` is called when a report is due."""

    def __init__(
        self,
        *,
        slices: Slices,
        services: NodeServices,
        group: asyncio.TaskGroup,
        many_tenants: bool,
        changed: Callable[[], None],
    ) -> None:
        self.controller_epoch = 0
        """The highest that has commanded."""
        self.draining = False
        """Nothing is bound any more."""
        self._slices = slices
        self._services = services
        self._group = group
        self._many_tenants = many_tenants
        self._tenant = ""
        self._changed = changed
        self._containers: dict[str, Container] = {}
        self._past: deque[str] = deque(maxlen=REMEMBERED)

    def __iter__(self) -> Iterator[Container]:
        return iter(list(self._containers.values()))

    # -- how it is ----------------------------------------------------------------------------------------------

    @property
    def cpu_slots(self) -> int:
        """CPU slots, taken ones too: an idle container gives way at once to a caller, who then needs a blank."""
        return self._slices.cpu_slots

    @property
    def any_starting(self) -> bool:
        """Whether a container needs the processors to become ready."""
        return any(container.is_starting for container in self._containers.values())

    def slices(self) -> tuple[SliceReport, ...]:
        """What is offered, with who is on it."""
        return self._slices.reports()

    def devices(self) -> tuple[DeviceReport, ...]:
        """The GPUs."""
        return self._slices.devices()

    # -- the controller's commands ------------------------------------------------------------------------------

    def command(self, command: ContainerCommand | DeviceCommand) -> CommandReply:
        """Obey, or say why not."""
        reason = "stale_epoch"
        if command.epoch >= self.controller_epoch:
            self.controller_epoch = command.epoch
            if isinstance(command, DeviceCommand):
                reason = self._cut(command)
            else:
                reason = self._bind(command) if isinstance(command, Bind) else self._end(command)
        return CommandReply(ok=not reason, reason=reason, epoch=self.controller_epoch)

    def _cut(self, command: DeviceCommand) -> str:
        reason = "draining" if self.draining else self._slices.command(command)
        self._changed()
        return reason

    def _bind(self, bind: Bind) -> str:
        known = self._containers.get(bind.container)
        if known is not None:
            return "" if known.version == bind.version and known.slice == bind.slice else "container_taken"
        if refusal := self._why_not(bind):
            return refusal
        part = self._slices.take(bind.slice, bind.container, bind.tenant, neighbours=bind.neighbours)
        container = Container(bind, part, self._services)
        self._tenant = bind.tenant
        self._containers[bind.container] = container
        self._past.append(bind.container)
        self._group.create_task(self._live(container))
        self._services.credits.changed(container)
        self._changed()
        return ""

    def _why_not(self, bind: Bind) -> str:
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
        return "other_tenant" if self._tenant not in ("", bind.tenant) and not self._many_tenants else ""

    def _end(self, command: ContainerCommand) -> str:
        container = self._containers.get(command.container)
        if container is None:
            return "gone"
        if isinstance(command, Drain):
            container.drain(command.within_ms / 1000, command.reason)
        elif not isinstance(command, Bind):
            container.stop(command.reason)
        self._changed()
        return ""

    async def _live(self, container: Container) -> None:
        try:
            await container.live()
        except Exception:
            log.exception("a container's life went wrong", container=container.id)
        finally:
            del self._containers[container.id]
            self._slices.release(container.slice)
            self._services.pool.stir()
            self._changed()

    # -- calls --------------------------------------------------------------------------------------------------

    def run(self, run: Run, at: float, received: float) -> None:
        """A granted call; it cannot have come before `received`."""
        container = self._containers.get(run.container)
        if container is not None and container.holds(run.call):
            refusal: Refusal | None = Refusal.NO_SLOT  # an abandoned run of the same call has not ended yet
        else:
            refusal = self._services.slots.accept(run, received)
        if refusal is None and container is not None:
            container.take(run, at, received)
            return
        if refusal is None or refusal is Refusal.NO_SLOT:
            self._services.slots.release(run.call, run.grant)
        frame = Refused(call=run.call, grant=run.grant, container=run.container, reason=refusal or Refusal.GONE)
        self._services.origins.tell(run.gateway, frame)
        if container is not None:
            self._services.credits.changed(container)  # its home knew too little of it

    def control(self, message: Cancel | Window | Reconcile, at: float) -> None:
        """What an origin says of calls that are here."""
        if isinstance(message, Window):
            for container in self._containers.values():
                container.window(message.call, message.upto, at)
        elif isinstance(message, Cancel):
            for held in self._services.slots.cancel(message.call):
                self._cancel(held.container, held.call, message.reason, at)
        else:
            self._reconcile(message, at)

    def vanished(self, gateway: str, at: float) -> None:
        """An origin is gone: nobody waits for its calls."""
        log.warning("a gateway listens no more; its calls are cancelled", gateway=gateway)
        for container in self._containers.values():
            container.cancel_all_of(gateway, at)

    def _reconcile(self, message: Reconcile, at: float) -> None:
        outcome = self._services.slots.reconcile(message, at)
        for orphan in outcome.orphans:
            self._cancel(orphan.container, orphan.call, "its gateway does not know it", at)
        for past in outcome.over:
            if not self._services.origins.repeat(past.call, past.grant):
                ended = Ended(
                    call=past.call,
                    grant=past.grant,
                    container="",
                    outcome=Outcome.DIED,
                    started=past.started,
                    reason=LOST,
                )
                self._services.origins.tell(message.gateway, ended)

    def _cancel(self, container: str, call: str, reason: str, at: float) -> None:
        if container in self._containers:
            self._containers[container].cancel(call, reason, at)

    # -- the clock, and the end ---------------------------------------------------------------------------------

    def sweep(self, at: float) -> None:
        """Every few 10 ms."""
        for container in self._containers.values():
            self._guarded(container, container.sweep, at)

    def second(self, at: float) -> None:
        """Once a second."""
        for container in self._containers.values():
            self._guarded(container, container.second, at)

    @staticmethod
    def _guarded(container: Container, step: Callable[[float], None], at: float) -> None:
        """A mistake of ours ends the container in which it shows, not the node."""
        try:
            step(at)
        except Exception:
            log.exception("a container's clock went wrong", container=container.id)
            container.stop("a mistake of the platform")

    async def drain_all(self, *, drain_s: float, end_s: float) -> None:
        """Let all end what they hold, at most so long, then end them."""
        self.draining = True
        self._changed()
        for container in self:
            container.drain(drain_s, "the node's agent stops")
        if await self._wait_all_gone(drain_s + end_s):
            return
        for container in self:
            container.stop("the node's agent stops")
        await self._wait_all_gone(end_s)

    async def _wait_all_gone(self, within: float) -> bool:
        try:
            async with asyncio.timeout(within):
                for container in self:
                    await container.wait_gone()
        except TimeoutError:
            return False
        return True

    def check_integrity(self) -> None:
        """Raises AssertionError if a slice is counted twice or has nobody on it."""
        self._slices.check_integrity()
        if {c.slice: c.id for c in self._containers.values()} != self._slices.held:
            raise AssertionError("slices and containers disagree")
        gone = [c.id for c in self._containers.values() if c.state is ContainerState.GONE and c.held]
        if gone:
            raise AssertionError(f"{gone} are gone and hold calls")
