"""What serves the calls of one container: from when its guest has loaded until the container is gone.

It has the container's calls (`runner`), those that they make (nested), its repeated check, and, once its node is taken
away, what that does to calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import structlog
from msgspec import UNSET

from pilotlight_core.model.messages.call_messages import RemoteError
from pilotlight_core.model.messages.engine_report import EngineReport
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.messages.usage_facts import Fault
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_runtime.calls.answer_room import AnswerRoom
from pilotlight_runtime.calls.call_runner import CallRunner
from pilotlight_runtime.calls.credits import CreditSource
from pilotlight_runtime.calls.node_calls import NodeCalls
from pilotlight_runtime.calls.preemption_plan import PreemptionPlan
from pilotlight_runtime.calls.slot_table import AcceptedCall
from pilotlight_runtime.containers.blanks.blank import Blank
from pilotlight_runtime.containers.container_check import check_of
from pilotlight_runtime.containers.container_io import ContainerIO
from pilotlight_runtime.containers.container_nested import ContainerNested
from pilotlight_runtime.containers.pace_gate import PaceGate
from pilotlight_runtime.guest import frames as guest
from pilotlight_runtime.guest.guest_connection import GuestConnection
from pilotlight_runtime.metering.container_meter import ContainerMeter

log = structlog.get_logger(__name__)

LEAVE_S = 10.0
"""Bounds the exit hooks."""
LEAST_LEAVE_S = 1.0
"""The same where the node is taken away: what is left of its time, or so long."""
FULL_EVERY_S = 0.05
"""Between two times at which a container is taken for full: a guest may say so as often as it likes."""
RETIRE_MARGIN_S = 5.0
"""Beyond the function's timeout, after which none of its calls can still run."""


class ServedContainer(CreditSource, Protocol):
    """The part of a container that its calls need."""

    def drain(self, within_s: float, reason: str) -> None: ...

    def kill(self, reason: str, fault: Fault = Fault.TENANT) -> None: ...

    def kill_untrusted(self, reason: str) -> None: ...

    def on_idle(self) -> None:
        """It holds no call any more."""
        ...


class ContainerServing:
    def __init__(
        self,
        container: ServedContainer,
        spec: FunctionSpec,
        blank: Blank,
        connection: GuestConnection,
        *,
        calls: NodeCalls,
        meter: ContainerMeter,
        stop_grace_s: float,
        clock: Callable[[], float],
    ) -> None:
        self.accepted = 0
        """Calls so far."""
        self.is_unfit = False
        """Whether a check that it ran while it was ready has failed."""
        self.spare = spec.slots - spec.slots_of_all
        """Slots for callers who have few: an engine takes more calls than it runs, and preempts others for them."""
        self.engine: EngineReport | None = None
        """How its engine was when it last told."""
        self._is_full = False
        """Whether calls wait within for want of room, as its function has told."""
        self._pace = PaceGate(spec.slo.itl_ms if spec.engine is not UNSET else None)
        self._full_at = self._paced_at = float("-inf")
        self._container = container
        self._spec = spec
        self._blank = blank
        self._calls = calls
        self._clock = clock
        self._io = ContainerIO(
            calls=calls,
            connection=connection,
            meter=meter,
            release=self._release,
            retire=self._retire,
            kill=container.kill,
            clock=clock,
        )
        self.runner = CallRunner(spec, container.id, self._io, stop_grace_s=stop_grace_s)
        self._nested = ContainerNested(
            calls.nested, container.id, find_running=self.runner.find_running, send=self._io.send_to_guest,
            room=AnswerRoom(connection), kill=container.kill_untrusted,
        )  # fmt: skip
        self._check = check_of(
            spec,
            self.runner,
            send=self._io.send_to_guest,
            failed=self._take_out,
            container=container.id,
            at=clock(),
        )
        self._is_forming = False  # a batch, when this was last asked
        self._preemption: PreemptionPlan | None = None  # once its node is taken away
        self._hooks_began = False

    @property
    def is_preempted(self) -> bool:
        """Whether its node is taken away."""
        return self._preemption is not None

    @property
    def is_checking(self) -> bool:
        """Whether its guest is busy with a check."""
        return self._check is not None and self._check.is_under_way

    @property
    def slots(self) -> int:
        """Calls that it takes, those that it holds included: while some wait within, the spare ones are left, and while
        tokens come too slowly none. One that holds none has none that wait, whatever it says.
        """
        held, most = len(self.runner.held), self._spec.slots
        return min(held + self.spare if self._is_full and held else most, self._pace.slots(held=held, most=most))

    def pause(self, at: float) -> None:
        """It is parked."""
        if self._check is not None:
            self._check.pause(at)

    def resume(self, at: float) -> None:
        """It was parked, and serves again: its next check has time."""
        if self._check is not None:
            self._check.resume(at)

    def add(self, call: AcceptedCall, at: float) -> None:
        """Run a call that the slot table has accepted."""
        self.accepted += 1
        self.runner.add(call, at)
        self._publish_forming()

    def next_limit_at(self, at: float) -> float:
        """When `check_limits` may have something to do; while its node is taken away, always."""
        return at if self._preemption is not None else self.runner.next_limit_at(at)

    def check_limits(self, at: float) -> None:
        self.runner.check_limits(at)
        if self._preemption is not None:
            self.runner.preempt(self._preemption, at)

    def tick(self, at: float) -> None:
        """Cancel abandoned calls, end if they do not, and check it if it is time. Once a second."""
        self.runner.cancel_abandoned(at)
        self.runner.end_abandoned(at)
        self._nested.tick()
        if self._check is not None and self._container.state is ContainerState.READY:
            self._check.tick(at)

    def on_frame(self, frame: Any, at: float) -> bool:
        """Take what the guest says of calls; False if it is something else."""
        if type(frame) is guest.Result:
            if self._check is None or not self._check.on_result(frame, at):
                self.runner.on_result(frame, at)
        elif isinstance(frame, guest.ChunksOut):
            self.runner.on_chunks(frame, at)
        elif isinstance(frame, guest.ChunkOut):
            self.runner.on_chunk(frame, at)
        elif isinstance(frame, guest.CheckpointOut):
            self.runner.on_checkpoint(frame, at)
        elif isinstance(frame, guest.BatchResult):
            self.runner.on_batch_result(frame, at)
        elif isinstance(frame, guest.NestedCall | guest.NestedLeave):
            self._nested.on_frame(frame)
        elif isinstance(frame, guest.EngineReportOut):
            self._on_report(frame.report, at)
        elif isinstance(frame, guest.DrainHooksEnded) and self._preemption is not None and self._hooks_began:
            self._preemption.hooks_until_at = at
        else:
            return False
        return True

    def _on_report(self, report: EngineReport, at: float) -> None:
        """Calls that wait within wait at their home instead, where tenants take turns, as far as they have not come.

        That there is room again is always told at once; that there is none only so often.
        """
        if self._spec.engine is not UNSET:
            self.engine = report
        is_full = report.lacks_room
        if is_full is not self._is_full and not (is_full and at - self._full_at < FULL_EVERY_S):
            self._is_full = is_full
            if is_full:
                self._full_at = at
            self._calls.credits.publish_soon(self._container)
        # What is not told at once of its pace goes with the next call that ends, or the next second.
        is_other = self._pace.note(report, held=len(self.runner.held), most=self._spec.slots)
        if is_other and at - self._paced_at >= FULL_EVERY_S:
            self._paced_at = at
            self._calls.credits.publish_soon(self._container)

    def close(self) -> None:
        self._io.close()

    # -- its node is taken away ---------------------------------------------------------------------------------

    def preempt(self, within_s: float, reason: str, at: float) -> None:
        """Give back what has not begun, and end within `within_s` what has."""
        self._preemption = PreemptionPlan(until_at=at + within_s, reason=reason)
        self.runner.refuse_waiting()
        self._run_drain_hooks(self._preemption, at)
        self.runner.preempt(self._preemption, at)

    def withdraw_preemption(self) -> None:
        """The node stays: what runs goes on, but for what was ended already."""
        self._preemption = None

    def _run_drain_hooks(self, plan: PreemptionPlan, at: float) -> None:
        """Have them run beside the calls, if there are any; a notice that comes nearer finds them under way."""
        if self._spec.drain is UNSET or self._blank.frames < guest.KNOWS_DRAINS:
            return
        plan.hooks_until_at = at + (plan.until_at - at) / 2
        if not self._hooks_began:
            self._hooks_began = True
            self._io.send_to_guest(guest.DrainGuest())

    def leave_s(self, at: float) -> float:
        """How long its exit hooks may take, and what runs before them."""
        if self._preemption is None:
            return LEAVE_S + (self._check.left_s(at) if self._check is not None else 0.0)
        left_s = max(LEAST_LEAVE_S, self._preemption.until_at - at)
        return left_s if self._hooks_began else min(LEAVE_S, left_s)

    # -- small steps --------------------------------------------------------------------------------------------

    def _release(self, call: AcceptedCall) -> None:
        self._calls.slots.release(call.call_id, call.grant_number)
        if call.error is not None:
            # Callers other than the owner get only a code; the owner finds the error in the log.
            self._blank.tap.log_failure(call.call_id, call.error)
        if not self._publish_forming() and call.run.home != call.run.gateway:
            self._calls.credits.slot_freed(self._container, call.run.home)
        if self.runner.is_idle:
            self._container.on_idle()
        if self._check is not None and self._container.state is ContainerState.READY:
            self._check.begin_if_due(self._clock())

    def _publish_forming(self) -> bool:
        """Say so if a batch has begun to form, or has gone; whether it was said."""
        before, self._is_forming = self._is_forming, self.runner.is_batching and self.runner.batch_room > 0
        if changed := before is not self._is_forming:
            self._calls.credits.publish_soon(self._container)
        return changed

    def _retire(self, reason: str) -> None:
        if self._container.state is ContainerState.READY:
            self._container.drain(self._spec.timeout + RETIRE_MARGIN_S, reason)

    def _take_out(self, reason: str, error: RemoteError | None) -> None:
        """End: a check of it has failed. Calls that the guest does not have go elsewhere."""
        container = self._container
        text = f"{reason}: {error.type}: {error.message:.300}" if error is not None else reason
        log.warning("a container's check failed", container=container.id, version=container.version, reason=text)
        if container.state is not ContainerState.READY:
            return  # it ends anyway
        self.is_unfit = True
        self._blank.tap.log(f"the container is taken out of service: {text}")
        if error is not None and error.traceback:
            self._blank.tap.log_failure("", error)
        self.runner.refuse_waiting()
        if error is None and not self.runner.running:
            container.kill(reason)  # its guest hangs
        else:
            self._retire(text)
