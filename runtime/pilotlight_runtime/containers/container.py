"""One container, from its bind to its end.

    BINDING   a blank is taken, or a sandbox started; the verified files are linked into it
    LOADING   the guest imports, enters, checks
    READY     calls run
    PARKED    it has left its slice, and keeps its memory (`parking`); READY again, by way of LOADING, or DRAINING
    DRAINING  held calls end, exit hooks run
    GONE      everything is removed, and the slice is free again

The task `Container.run` goes through these, through BINDING and LOADING with a `ContainerStart`; the guest's frames and
the sandbox's exit call methods in between.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import structlog

from pilotlight_core.model.messages.call_messages import RemoteError
from pilotlight_core.model.messages.node_messages import (
    STOP_GRACE_S,
    Bind,
    ContainerReport,
    ContainerState,
    SliceReport,
)
from pilotlight_core.model.messages.usage import LeaseState
from pilotlight_core.model.messages.usage_facts import Fault, Purpose
from pilotlight_core.model.spec import Manifest
from pilotlight_runtime.calls.answer_room import AnswerRoom
from pilotlight_runtime.calls.call_runner import CallRunner
from pilotlight_runtime.calls.node_calls import NodeCalls
from pilotlight_runtime.calls.slot_table import AcceptedCall
from pilotlight_runtime.containers.blanks.blank import Blank
from pilotlight_runtime.containers.blanks.resource_limits import describe, frame_limit
from pilotlight_runtime.containers.container_io import ContainerIO
from pilotlight_runtime.containers.container_nested import ContainerNested
from pilotlight_runtime.containers.container_parking import CannotPark, ContainerParking
from pilotlight_runtime.containers.container_start import START_ERRORS, ContainerStart, StartFailed, failure_of
from pilotlight_runtime.containers.drain_deadline import DrainDeadline
from pilotlight_runtime.containers.parking import NodeParking
from pilotlight_runtime.containers.provisioner import Provisioner
from pilotlight_runtime.guest import frames as guest
from pilotlight_runtime.guest.guest_connection import GuestConnection, GuestGone
from pilotlight_runtime.logs.log_shipper import LogKey, LogShipper
from pilotlight_runtime.metering.container_meter import ContainerMeter
from pilotlight_runtime.sandbox.sandbox_port import SandboxExit

log = structlog.get_logger(__name__)

LEAVE_S = 10.0
"""Bounds the exit hooks."""
RETIRE_MARGIN_S = 5.0
"""Beyond the function's timeout, after which none of its calls can still run."""


class Container:
    def __init__(
        self,
        bind: Bind,
        part: SliceReport,
        *,
        provisioner: Provisioner,
        calls: NodeCalls,
        meter: ContainerMeter,
        logs: LogShipper,
        parking: NodeParking,
        stop_grace_s: float = STOP_GRACE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.id = bind.container
        self.version = bind.version
        self.tenant = bind.tenant
        self.function = bind.function
        self.state = ContainerState.BINDING
        self.reason = ""
        self.error: RemoteError | None = None
        self.runner: CallRunner | None = None
        self._bind = bind
        self._provisioner = provisioner
        self._calls = calls
        self._logs = logs
        self._stop_grace_s = stop_grace_s
        self._clock = clock
        self._meter = meter
        self.parking = ContainerParking(bind, part, parking, meter, clock)
        self._accepted = 0
        self._manifest: Manifest | None = None
        self._start = ContainerStart(
            bind, part, provisioner=provisioner, changed=lambda: calls.credits.publish_soon(self),
            kill=self._kill_untrusted, clock=clock,
        )  # fmt: skip
        self.timeline = self._start.timeline
        self._connection: GuestConnection | None = None
        self._io: ContainerIO | None = None
        self._nested: ContainerNested | None = None
        self._born_at = self._idle_since_at = self._clock()
        self._kill_reason = ""
        self._is_forming = False  # a batch, when this was last asked
        self._ending = asyncio.Event()  # its end was asked for, or has come
        self._woken = asyncio.Event()  # that, or it is to be parked or unparked
        self._dead = asyncio.Event()
        self._gone = asyncio.Event()
        self._drain_deadline = DrainDeadline(clock)

    # -- state -------------------------------------------------------------------------------------------------

    @property
    def slots(self) -> int:
        """The most calls it holds; 0 until its manifest is known."""
        return self._manifest.spec.slots if self._manifest else 0

    @property
    def held(self) -> tuple[str, ...]:
        return self.runner.held if self.runner else ()

    @property
    def batch_room(self) -> int:
        return self.runner.batch_room if self.runner else 0

    @property
    def is_starting(self) -> bool:
        return self.state in (ContainerState.BINDING, ContainerState.LOADING) and self.runner is None

    @property
    def slice(self) -> str:
        """Where it is; "" while it is parked."""
        return self.parking.slice

    def report(self, at: float) -> ContainerReport:
        manifest = self._manifest
        return ContainerReport(
            id=self.id, version=self.version, tenant=self.tenant, app=manifest.app if manifest else "",
            function=manifest.function if manifest else "", slice=self.slice, state=self.state, slots=self.slots,
            running=self.runner.running if self.runner else 0, age_s=at - self._born_at,
            idle_s=0.0 if self.held else at - self._idle_since_at, calls=self._accepted, reason=self.reason,
            timeline=self.timeline,
            memory_bytes=self._start.blank.sandbox.memory_peak_bytes() if self._start.blank else 0,
            host=self._bind.host, guessed=self._meter.is_guess, secrets=self._start.secrets,
            network=self._provisioner.network_mark(self.id, manifest) if manifest else 0,
            parks=self.parking.where if self.runner is not None else "",
        )  # fmt: skip

    # -- commands, and the clock --------------------------------------------------------------------------------

    def add(self, call: AcceptedCall, at: float) -> None:
        """Run a call that the slot table has accepted."""
        assert self.runner is not None  # noqa: S101 - only ready containers have slots
        self._accepted += 1
        self.runner.add(call, at)
        if self.runner.is_batching and self._forming_changed():
            self._calls.credits.publish_soon(self)

    def holds(self, call_id: str) -> bool:
        return self.runner is not None and self.runner.holds(call_id)

    def on_window(self, call_id: str, upto: int, at: float) -> None:
        if self.runner is not None:
            self.runner.on_window(call_id, upto, at)

    def cancel(self, call_id: str, reason: str, at: float) -> None:
        if self.runner is not None:
            self.runner.cancel(call_id, reason, at)

    def cancel_calls_of(self, gateway: str, at: float) -> None:
        if self.runner is not None:
            for call_id in self.runner.calls_of(gateway):
                self.runner.cancel(call_id, f"the gateway {gateway} is gone", at)

    def check_limits(self, at: float) -> None:
        if self.runner is not None and self.state is not ContainerState.GONE:
            self.runner.check_limits(at)

    def keep(self, purpose: Purpose) -> None:
        """From now on it is there for `purpose`, as if it had begun no call."""
        self._meter.keep(purpose)

    def drain(self, within_s: float, reason: str) -> None:
        """Take no new call, end the held ones within `within_s`, then end. A later drain may shorten an earlier one."""
        if self.state in (ContainerState.READY, ContainerState.DRAINING):
            self._drain_deadline.limit(within_s)
        if self.state is ContainerState.READY:
            self._enter(ContainerState.DRAINING, reason)
            self._calls.slots.drain(self.id)
            self._meter.enter(LeaseState.DRAINING)
            if self.runner is not None:
                self.runner.drain(self._clock())
                if self.runner.is_idle:
                    self._drain_deadline.on_idle()
            self._end()
        elif self.is_starting:
            self.stop(reason)
        elif self.state in (ContainerState.PARKED, ContainerState.LOADING):
            self._drain_deadline.limit(within_s)
            self._drain_deadline.on_idle()
            self._enter(ContainerState.DRAINING, reason)
            self._end()

    def park(self, likelihood: float) -> str:
        """Have it leave its slice and keep its memory; or why not. Where there is no room for it, it drains."""
        if self.state is ContainerState.PARKED:
            return ""
        if self.state is not ContainerState.READY or self.held:
            return "busy"
        if not self.parking.where:
            return "cannot_park"
        if not self.parking.begin(likelihood, self._evicted):
            self.drain(LEAVE_S, "there is no room to park it")
            return ""
        self._calls.slots.drain(self.id)
        self._enter(ContainerState.PARKED)
        self._woken.set()
        return ""

    def unpark(self, slice_id: str, purpose: Purpose) -> str:
        """Have it serve again on a slice; or why not."""
        if self.state in (ContainerState.READY, ContainerState.LOADING) and slice_id == self.slice:
            return ""
        if self.state is not ContainerState.PARKED:
            return "not_parked"
        if slice_id and slice_id == self.slice:  # it has not left it yet
            self.parking.call_back(purpose)
        elif why := self.parking.refusal(slice_id):
            return why
        else:
            self.parking.take(slice_id, purpose)
        self.timeline = {}
        self._born_at = self._clock()
        self._enter(ContainerState.LOADING)
        self._woken.set()
        return ""

    def _evicted(self) -> None:
        """Something else is worth more than its memory."""
        self.parking.evicted()
        self.stop("it was parked, and its memory is needed for what is worth more")

    def stop(self, reason: str) -> None:
        """End now."""
        if self.is_starting and not self._ending.is_set():
            self._start.cut_short()
        self._end()
        self._kill(reason or "stopped", Fault.PLATFORM)

    def tick(self, at: float) -> None:
        """Cancel abandoned calls, end if they do not, and log the number of dropped lines. Once a second."""
        if self.runner is not None:
            self.runner.cancel_abandoned(at)
            self.runner.end_abandoned(at)
        if self._nested is not None:
            self._nested.tick()
        if self._start.blank is not None:
            self._start.blank.tap.tick(at)

    async def wait_gone(self) -> None:
        await self._gone.wait()

    # -- its life -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        failed: BaseException | None = None
        try:
            if await self._start_up():
                await self._live()
                await self._shut_down()
        except BaseException as error:  # noqa: BLE001 - it is raised again, once all is destroyed
            failed = error
        try:
            await self._destroy()
            if failed is not None:
                raise failed
        finally:
            failed = None

    async def _start_up(self) -> bool:
        start = self._start
        try:
            if self._ending.is_set():
                raise StartFailed(self._kill_reason)
            self._meter.enter(LeaseState.PROVISIONING)
            async with start.bound():
                manifest = await start.fetch_manifest()
                self._set_manifest(manifest)
                blank = await start.prepare(manifest, self._on_exit)
                connection = self._hand_over(blank, manifest)
                await start.load(manifest, blank, connection)
                self._open(blank, connection, manifest)
            return True
        except TimeoutError:
            failed = StartFailed(self._kill_reason) if self._kill_reason else start.late()
        except START_ERRORS as error:
            failed = failure_of(error)
        self._fail(failed)
        return False

    def _set_manifest(self, manifest: Manifest) -> None:
        """Take the verified manifest; from now on the tenant pays."""
        self._manifest = manifest
        self.function = f"{manifest.tenant}:{manifest.app}.{manifest.function}"
        self._meter.set_owner(manifest, self.version, self.id)
        self._meter.enter(LeaseState.PROVISIONING)

    def _hand_over(self, blank: Blank, manifest: Manifest) -> GuestConnection:
        """Give the sandbox to this container, which gets its lines and its guest's frames."""
        topic = LogKey(manifest.tenant, manifest.app, manifest.function)
        blank.tap.container = self.id
        blank.tap.sink = lambda line: self._logs.offer(topic, line)
        self._connection = blank.hand_over(self._on_frame)
        self._enter(ContainerState.LOADING)
        self._meter.enter(LeaseState.LOADING)
        return self._connection

    def _open(self, blank: Blank, connection: GuestConnection, manifest: Manifest) -> None:
        if blank.exit is not None:
            raise StartFailed(self.reason, RemoteError("ContainerDied", self.reason))
        self._io = ContainerIO(
            calls=self._calls,
            connection=connection,
            meter=self._meter,
            release=self._release,
            retire=self._retire,
            kill=self._kill,
            clock=self._clock,
        )
        self.runner = runner = CallRunner(manifest.spec, self.id, self._io, stop_grace_s=self._stop_grace_s)
        self._nested = ContainerNested(
            self._calls.nested, self.id, find_running=runner.find_running, send=self._io.send_to_guest,
            room=AnswerRoom(connection), kill=self._kill_untrusted,
        )  # fmt: skip
        blank.tap.running = self.runner.only_call
        connection.set_frame_limit(frame_limit(manifest.spec))
        load_s = sum(self._start.timeline.values()) / 1000
        self.parking.open(blank.sandbox, connection, load_s=load_s, has_hooks=self._start.has_park_hooks)
        self._serve()

    def _serve(self) -> None:
        """Take calls from now on."""
        self._calls.slots.open(self.id, self.version, self.slots)
        self._idle_since_at = self._clock()
        self._meter.enter(LeaseState.IDLE)
        self._enter(ContainerState.READY)
        self._provisioner.container_changed()

    async def _live(self) -> None:
        """Until it is to end: it serves, and is parked and unparked."""
        while not self._ending.is_set():
            await self._woken.wait()
            self._woken.clear()
            try:
                if not self._ending.is_set() and await self.parking.go_on(self._ending):
                    self.timeline = {"unpark": round((self._clock() - self._born_at) * 1000, 3)}
                    self._serve()
            except CannotPark as error:
                self._log(str(error))
                self.drain(LEAVE_S, str(error))

    async def _shut_down(self) -> None:
        if self._kill_reason:
            return
        try:
            await self._drain_deadline.wait_idle()
        except TimeoutError:
            self._kill(f"drained: its calls had not ended in time ({self.reason})", Fault.PLATFORM)
            return
        if self._start.blank is None or self._connection is None or self._start.blank.exit is not None:
            return
        within_s = self.parking.thaw_to_leave() or LEAVE_S
        try:
            self._connection.send(guest.Leave())
            async with asyncio.timeout(within_s):
                await self._dead.wait()
        except (GuestGone, TimeoutError):
            self._kill("its exit hooks did not end in time")

    async def _destroy(self) -> None:
        self._end()
        self.reason = self.reason or self._kill_reason or "a mistake of the platform"
        self._calls.slots.drain(self.id)
        self._provisioner.close_network(self.id)
        if self._start.blank is not None:
            await self._start.blank.destroy()
        if self.runner is not None:  # if even the kernel could not end it, its callers must not wait
            self.runner.on_death(self.reason, self._clock())
        self._calls.slots.close(self.id)
        self._set_gone()
        self._gone.set()
        self._provisioner.container_changed()

    # -- events of the guest and the sandbox --------------------------------------------------------------------

    def _on_frame(self, frame: Any) -> None:
        at = self._clock()
        runner = self.runner
        if runner is None:
            if not self._start.on_frame(frame):
                self._kill_unexpected(frame)
        elif type(frame) is guest.Result:
            runner.on_result(frame, at)
        elif isinstance(frame, guest.ChunkOut):
            runner.on_chunk(frame, at)
        elif isinstance(frame, guest.BatchResult):
            runner.on_batch_result(frame, at)
        elif isinstance(frame, guest.NestedCall | guest.NestedLeave) and self._nested is not None:
            self._nested.on_frame(frame)
        elif isinstance(frame, guest.HooksRan) and self.parking.answer(frame):
            pass
        else:
            self._kill_unexpected(frame)

    def _on_exit(self, end: SandboxExit) -> None:
        in_order = self.state is ContainerState.DRAINING and not self.held and end.reason == "exited"
        if not in_order:
            broken = self._start.blank.broken if self._start.blank else ""
            killed = end.reason == "killed" and (self._kill_reason or broken)
            reason = killed or describe(end, self._provisioner.limits(self._manifest))
            if self.state is not ContainerState.GONE:  # else a failed start has set its reason
                self.reason = reason
            self._log(f"the container has ended: {reason}")
        self._start.on_exit(self.reason)
        self.parking.on_exit()
        if self.runner is not None:
            self.runner.on_death(self.reason, self._clock())
            self._set_gone()
        self._calls.slots.close(self.id)
        self._drain_deadline.on_idle()
        self._end()
        self._dead.set()

    def _release(self, call: AcceptedCall) -> None:
        self._calls.slots.release(call.call_id, call.grant_number)
        if call.error is not None and self._start.blank is not None:
            # Callers other than the owner get only a code; the owner finds the error in the log.
            self._start.blank.tap.log_failure(call.call_id, call.error)
        runner = self.runner
        assert runner is not None  # noqa: S101 - it releases
        if runner.is_batching and self._forming_changed():
            self._calls.credits.publish_soon(self)
        elif call.run.home != call.run.gateway:
            self._calls.credits.slot_freed(self, call.run.home)
        if runner.is_idle:
            self._idle_since_at = self._clock()
            if self._ending.is_set():
                self._drain_deadline.on_idle()

    # -- small steps --------------------------------------------------------------------------------------------

    def _end(self) -> None:
        self._ending.set()
        self._woken.set()

    def _retire(self, reason: str) -> None:
        if self._manifest is not None and self.state is ContainerState.READY:
            self.drain(self._manifest.spec.timeout + RETIRE_MARGIN_S, reason)

    def _forming_changed(self) -> bool:
        before, self._is_forming = self._is_forming, self.batch_room > 0
        return before is not self._is_forming

    def _kill_unexpected(self, frame: Any) -> None:
        self._kill_untrusted(f"the guest sent {type(frame).__name__} while it was {self.state.value}")

    def _kill_untrusted(self, reason: str) -> None:
        if not self._kill_reason:
            self._kill(reason)

    def _kill(self, reason: str, fault: Fault = Fault.TENANT) -> None:
        if not self._kill_reason:
            self._kill_reason, self._meter.fault_of_death = reason, fault
        self._end()
        self._calls.slots.drain(self.id)
        if self.runner is not None:
            self.runner.halt()
        if self._start.blank is not None:
            self._start.blank.sandbox.kill()

    def _fail(self, failed: StartFailed) -> None:
        self.reason, self.error = failed.reason, failed.error
        log.warning("a container did not become ready", container=self.id, version=self.version, reason=self.reason)
        self._set_gone()

    def _set_gone(self) -> None:
        if self.state is not ContainerState.GONE:
            self.state = ContainerState.GONE
            self._meter.release()
            self._calls.credits.container_gone(self, self._clock())
            if self._io is not None:
                self._io.close()

    def _enter(self, state: ContainerState, reason: str = "") -> None:
        self.state, self.reason = state, reason
        self._calls.credits.publish_soon(self)

    def _log(self, sentence: str) -> None:
        if self._start.blank is not None and self._manifest is not None:
            self._start.blank.tap.log(sentence)
