"""Connects one container's `CallRunner` to guest, gateways, meter and slots."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from pilotlight_core.model.messages.call_messages import CallFrame, Outcome, Refusal, Spent
from pilotlight_core.model.messages.usage_facts import Fault
from pilotlight_runtime.calls.call_log import logged_as
from pilotlight_runtime.calls.node_calls import NodeCalls
from pilotlight_runtime.calls.runner_io import InputFetched, OutputUploaded
from pilotlight_runtime.calls.slot_table import AcceptedCall
from pilotlight_runtime.calls.waiting_calls import NO_NOTE
from pilotlight_runtime.guest import frames as guest
from pilotlight_runtime.guest.guest_connection import GuestConnection, GuestGone, GuestSlow
from pilotlight_runtime.metering.container_meter import ContainerMeter


class ContainerIO:
    """Implements `runner_io.RunnerIO`. `release`, `retire` and `kill` are the container's own steps."""

    def __init__(
        self,
        *,
        calls: NodeCalls,
        connection: GuestConnection,
        meter: ContainerMeter,
        release: Callable[[AcceptedCall], None],
        retire: Callable[[str], None],
        kill: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self.kill = kill
        self.retire = retire
        self.send: Callable[[str, CallFrame], None] = calls.origins.send
        self.send_chunks: Callable[[AcceptedCall, int, tuple[bytes, ...]], None] = calls.origins.send_chunks
        self.record_batch = meter.record_batch
        self._release = release
        self._calls = calls
        self._connection = connection
        self._meter = meter
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None
        self._pumps_at: float | None = None

    def send_to_guest(self, frame: guest.GuestFrame) -> None:
        try:
            self._connection.send(frame)
        except GuestGone:
            pass  # the sandbox's exit follows, and ends every call
        except (GuestSlow, guest.FrameTooLarge) as error:
            self.kill(str(error))

    @property
    def price(self) -> str:
        return self._meter.price

    def end_nested(self, call: AcceptedCall) -> None:
        self._calls.nested.end(call)

    def fetch_input(self, call: AcceptedCall, done: InputFetched) -> None:
        assert call.run.body is not None  # noqa: S101 - the runner asks only then
        with logged_as(call.run):
            self._calls.bodies.fetch(call.run.body, lambda data: done(call, data, self._clock()))

    def upload_output(self, call: AcceptedCall, done: OutputUploaded) -> None:
        with logged_as(call.run):
            self._calls.bodies.upload(call.run.answer, call.output, lambda taken: done(call, taken, self._clock()))

    def note_waiting(self, call: AcceptedCall) -> None:
        call.note = self._calls.waiting.add(call.run)

    def start(self, call: AcceptedCall, at: float) -> Refusal | None:
        if call.note != NO_NOTE:
            self._remove_note(call)
        refusal = self._calls.slots.start(call.call_id, call.grant_number, at)
        if refusal is None:
            self._meter.call_started(call.run)
        return refusal

    def refund(self, calls: Iterable[AcceptedCall]) -> None:
        split = list(calls)
        self._meter.end_batch([(call.call_id, call.batch_size) for call in split])
        for call in split:
            call.is_split = True

    def restart(self, call: AcceptedCall) -> None:
        call.is_split = False
        self._meter.call_restarted(call.run)

    def end_repeat(self, call: AcceptedCall) -> None:
        self._meter.end_repeat(call.run)

    def keep_work(self, calls: Sequence[AcceptedCall]) -> None:
        self._meter.keep_work([call.call_id for call in calls])

    def finish(self, call: AcceptedCall, outcome: Outcome) -> Spent | None:
        ran, resume = not call.is_split, call.run.resume
        if not ran:
            self.restart(call)
        fault = None
        can_move = call.can_move
        if call.is_preempted and outcome is Outcome.DIED:
            # The part of a stream that was sent is its caller's; what is run again elsewhere is paid once, there.
            has_sent = call.sent_seq > (resume.sent if resume is not None else 0)
            fault = Fault.NONE if has_sent and not can_move else Fault.PLATFORM
        elif outcome is Outcome.DIED:
            call.is_own_death = self._meter.fault_of_death is Fault.TENANT
        return self._meter.call_ended(
            call.call_id,
            outcome,
            call.batch_size,
            call.units,
            ran=ran and call.repeats_until is None,
            fault=fault,
            can_move=can_move,
        )

    def release(self, call: AcceptedCall) -> None:
        if call.note != NO_NOTE:
            self._remove_note(call)
        self._calls.nested.end(call)
        self._release(call)

    def pump_at(self, at: float | None, pump: Callable[[float], None]) -> None:
        if at == self._pumps_at:
            return
        self.close()
        if at is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, at - self._clock()), partial(self._pump, pump))
            self._pumps_at = at

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = self._pumps_at = None

    def _remove_note(self, call: AcceptedCall) -> None:
        self._calls.waiting.remove(call.note)
        call.note = NO_NOTE

    def _pump(self, pump: Callable[[float], None]) -> None:
        self._timer = self._pumps_at = None
        pump(self._clock())
