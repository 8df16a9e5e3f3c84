"""The world of one container's runner: its guest, its callers' gateways, its meter, its slots."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from pilotlight_core.model.messages.agent_messages import CallFrame, Outcome, Refusal, Spent
from pilotlight_runtime.calls.accepted_call import AcceptedCall
from pilotlight_runtime.calls.call_runner import CallRunner
from pilotlight_runtime.calls.waiting_calls import NO_NOTE
from pilotlight_runtime.containers.blank import Blank
from pilotlight_runtime.containers.container_services import NodeServices
from pilotlight_runtime.guest import frames as guest
from pilotlight_runtime.guest.guest_connection import GuestGone, GuestSlow
from pilotlight_runtime.metering.usage_metering import Meter

log = structlog.get_logger(__name__)


class ContainerIO:
    """Implements `runner.RunnerIO`. `freed`, `kill` and `ran` are the container's."""

    def __init__(
        self,
        *,
        services: NodeServices,
        blank: Blank,
        meter: Meter,
        freed: Callable[[AcceptedCall], None],
        kill: Callable[[str], None],
        ran: Callable[[int, float], None],
    ) -> None:
        self.kill = kill
        self.ran = ran
        self._freed = freed
        self.tell: Callable[[str, CallFrame], None] = services.origins.tell
        self.runner: CallRunner
        self._services = services
        self._blank = blank
        self._meter = meter
        self._slots = services.slots
        self._waiting = services.waiting
        self._clock = services.clock
        self._boot_ns = services.boot_ns
        self._timer: asyncio.TimerHandle | None = None

    def command(self, frame: guest.GuestFrame) -> None:
        try:
            self._blank.send(frame)
        except GuestGone:
            pass  # its end is on the way, and will be told for every call
        except (GuestSlow, guest.FrameTooLarge) as error:
            self.kill(str(error))

    def fetch(self, held: AcceptedCall) -> None:
        assert held.run.body is not None  # noqa: S101 - the runner asks only then
        self._services.bodies.fetch(held.run.body, lambda data: self.runner.fetched(held, data, self._clock()))

    def leave(self, held: AcceptedCall) -> None:
        output = held.verdict.output if held.verdict else b""
        self._services.bodies.leave(
            held.run.answer, output, lambda taken: self.runner.left(held, self._clock(), taken=taken)
        )

    def waits(self, held: AcceptedCall) -> None:
        held.note = self._waiting.add(held.run)

    def start(self, held: AcceptedCall, at: float) -> Refusal | None:
        if held.note != NO_NOTE:
            self._take_back(held)
        refusal = self._slots.start(held.run.call, held.run.grant, at)
        if refusal is None:
            self._meter.call_started(held.run.call, held.run.tenant, self._boot_ns())
        return refusal

    def spent(self, held: AcceptedCall, outcome: Outcome) -> Spent | None:
        return self._meter.call_ended(held.run.call, outcome.value, self._boot_ns(), held.batch_size)

    def freed(self, held: AcceptedCall) -> None:
        if held.note != NO_NOTE:
            self._take_back(held)
        self._freed(held)

    def wake(self, at: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, at - self._clock()), self._woken)

    def close(self) -> None:
        """No more timers."""
        self.wake(None)

    def _take_back(self, held: AcceptedCall) -> None:
        self._waiting.remove(held.note)
        held.note = NO_NOTE

    def _woken(self) -> None:
        self._timer = None
        self.runner.pump(self._clock())
