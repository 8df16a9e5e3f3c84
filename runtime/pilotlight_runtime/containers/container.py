"""One container, from its bind to its end.

    BINDING   a blank is taken, or a sandbox started; the verified files are linked into it
    LOADING   the guest imports and enters
    WARMING   it runs its warm-up examples, and checks itself
    READY     calls run
    PARKED    it has left its slice, and keeps its memory (`parking`); READY again, by way of LOADING, or DRAINING
    DRAINING  held calls end, exit hooks run
    GONE      everything is removed, and the slice is free again

The task `Container.run` goes through these, up to READY with a `ContainerStart`; the guest's frames and
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
    UNPARKED,
    Bind,
    ContainerReport,
    ContainerState,
    SliceReport,
)
from pilotlight_core.model.messages.usage import LeaseState
from pilotlight_core.model.messages.usage_facts import Fault, Purpose
from pilotlight_core.model.spec import Manifest
from pilotlight_runtime.calls.node_calls import NodeCalls
from pilotlight_runtime.containers.blanks.blank import Blank
from pilotlight_runtime.containers.blanks.resource_limits import describe, frame_limit
from pilotlight_runtime.containers.container_log import ContainerLog
from pilotlight_runtime.containers.container_parking import CannotPark, ContainerParking
from pilotlight_runtime.containers.container_serving import LEAVE_S, ContainerServing
from pilotlight_runtime.containers.container_start import START_ERRORS, ContainerStart, StartFailed, failure_of
from pilotlight_runtime.containers.drain_deadline import DrainDeadline
from pilotlight_runtime.containers.parking import NodeParking
from pilotlight_runtime.containers.provisioner import Provisioner
from pilotlight_runtime.guest import frames as guest
from pilotlight_runtime.guest.guest_connection import GuestConnection, GuestGone
from pilotlight_runtime.logs.log_shipper import LogShipper
from pilotlight_runtime.metering.container_meter import ContainerMeter
from pilotlight_runtime.sandbox.sandbox_port import NO_CPU_TIMES, SandboxExit

log = structlog.get_logger(__name__)

CUT_OFF_MARGIN_S = 1.0
"""Beyond the time that calls have when the node is taken away: their ends are told, and the guest may say what it
counted."""
FRESH_S = 0.25


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
        self.serving: ContainerServing | None = None
        """Once it has been ready."""
        self._bind = bind
        self._provisioner = provisioner
        self._calls = calls
        self._log = ContainerLog(logs, bind.container)
        self._stop_grace_s = stop_grace_s
        self._clock = clock
        self._meter = meter
        self.parking = ContainerParking(bind, part, parking, meter, clock)
        self._manifest: Manifest | None = None
        self._start = ContainerStart(
            bind, part, provisioner=provisioner, changed=lambda: calls.credits.publish_soon(self),
            kill=self.kill_untrusted, clock=clock,
        )  # fmt: skip
        self.timeline = self._start.timeline
        self._connection: GuestConnection | None = None
        self._born_at = self._idle_since_at = self._clock()
        self._kill_reason = ""
        self._ending = asyncio.Event()  # its end was asked for, or has come
        self._woken = asyncio.Event()  # that, or it is to be parked or unparked
        self._dead = asyncio.Event()
        self._gone = asyncio.Event()
        self._drain_deadline = DrainDeadline(clock)

    # -- state -------------------------------------------------------------------------------------------------

    @property
    def most_slots(self) -> int:
        """The most calls it holds; 0 until its manifest is known."""
        return self._manifest.spec.slots if self._manifest else 0

    @property
    def slots(self) -> int:
        """Those that it offers: fewer while its function says that calls wait within, or that tokens come slowly."""
        return self.serving.slots if self.serving is not None else self.most_slots

    @property
    def spare(self) -> int:
        """Of its slots, those for callers who have few."""
        return self.serving.spare if self.serving is not None else 0

    @property
    def pressure(self) -> float:
        """How full its engine's room for keys and values is: 0 to 1."""
        engine = self.serving.engine if self.serving is not None else None
        return engine.kv_used_ratio if engine is not None else 0.0

    @property
    def held(self) -> tuple[str, ...]:
        return self.serving.runner.held if self.serving else ()

    @property
    def batch_room(self) -> int:
        return self.serving.runner.batch_room if self.serving else 0

    @property
    def is_preempted(self) -> bool:
        """Whether it ends since its node is taken away."""
        return self.serving is not None and self.serving.is_preempted

    @property
    def is_starting(self) -> bool:
        starting = (ContainerState.BINDING, ContainerState.LOADING, ContainerState.WARMING)
        return self.state in starting and self.serving is None

    @property
    def slice(self) -> str:
        """Where it is; "" while it is parked."""
        return self.parking.slice

    @property
    def is_fresh(self) -> bool:
        """Whether it has just become ready, so that its first call is about to come."""
        is_unused = self.serving is not None and not self.serving.accepted
        return is_unused and self.state is ContainerState.READY and self._clock() - self._idle_since_at < FRESH_S

    def report(self, at: float) -> ContainerReport:
        manifest, sandbox = self._manifest, self._start.blank.sandbox if self._start.blank else None
        cpu = sandbox.cpu_times() if sandbox is not None else NO_CPU_TIMES
        return ContainerReport(
            id=self.id,
            version=self.version,
            tenant=self.tenant,
            app=manifest.app if manifest else "",
            function=manifest.function if manifest else "",
            slice=self.slice,
            state=self.state,
            slots=self.most_slots,
            running=self.serving.runner.running if self.serving else 0,
            age_s=at - self._born_at,
            idle_s=0.0 if self.held else at - self._idle_since_at,
            calls=self.serving.accepted if self.serving else 0,
            reason=self.reason,
            timeline=self.timeline,
            memory_bytes=sandbox.memory_peak_bytes() if sandbox is not None else 0,
            cpu_ms=cpu.used_ms,
            throttled_ms=cpu.throttled_ms,
            host=self._bind.host,
            unfit=self.serving is not None and self.serving.is_unfit,
            guessed=self._meter.is_guess,
            secrets=self._start.secrets,
            network=self._provisioner.network_mark(self.id, manifest) if manifest else 0,
            parks=self.parking.where if self.serving is not None else "",
            engine=self.serving.engine if self.serving is not None else None,
        )

    # -- commands, and the clock --------------------------------------------------------------------------------

    def check_limits(self, at: float) -> None:
        if self.serving is not None and self.state is not ContainerState.GONE:
            self.serving.check_limits(at)

    def keep(self, purpose: Purpose) -> None:
        """From now on it is there for `purpose`, as if it had begun no call; what is parked is there by a guess."""
        if self.state is not ContainerState.PARKED:
            self._meter.keep(purpose)

    def drain(self, within_s: float, reason: str, *, by_notice: bool = False) -> None:
        """Take no new call, end the held ones within `within_s`, then end. A later drain may shorten an earlier one.

        `by_notice`: the time is that of the node's end, which may be withdrawn.
        """
        if self.state in (ContainerState.READY, ContainerState.DRAINING):
            self._drain_deadline.limit(within_s, by_notice=by_notice)
        if self.state is ContainerState.READY:
            self._enter(ContainerState.DRAINING, reason)
            self._calls.slots.drain(self.id)
            self._meter.enter(LeaseState.DRAINING)
            if self.serving is not None:
                self.serving.runner.drain(self._clock())
                if self.serving.runner.is_idle:
                    self._drain_deadline.on_idle()
            self._end()
        elif self.is_starting:
            self.stop(reason)
        elif self.state in (ContainerState.PARKED, ContainerState.LOADING):
            self._drain_deadline.limit(within_s)
            self._drain_deadline.on_idle()
            self.parking.limit(within_s)
            self._enter(ContainerState.DRAINING, reason)
            self._end()

    def park(self, likelihood: float) -> str:
        """Have it leave its slice and keep its memory; or why not. Where there is no room for it, it drains."""
        if self.state is ContainerState.PARKED:
            return ""
        if self.state is not ContainerState.READY or self.serving is None or self.held or self.serving.is_checking:
            return "busy"
        if not self.parking.where:
            return "cannot_park"
        if not self.parking.begin(likelihood, self._evicted):
            self.drain(LEAVE_S, "there is no room to park it")
            return ""
        self._calls.slots.drain(self.id)
        self.serving.pause(self._clock())
        self._enter(ContainerState.PARKED)
        self._woken.set()
        return ""

    def unpark(self, slice_id: str, purpose: Purpose) -> str:
        """Have it serve again on a slice; or why not."""
        if self.state in (ContainerState.READY, ContainerState.LOADING) and slice_id == self.slice:
            return ""
        if self.state is not ContainerState.PARKED or self._ending.is_set():
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

    def preempt(self, within_s: float, reason: str) -> None:
        """Its node is taken away: give back what has not begun, and end within `within_s` what has."""
        if self.serving is not None and self.state in (ContainerState.READY, ContainerState.DRAINING):
            self._calls.slots.drain(self.id)
            self.serving.preempt(within_s, reason, self._clock())
        self.drain(within_s + CUT_OFF_MARGIN_S, reason, by_notice=True)

    def withdraw_preemption(self) -> None:
        """Its node stays: it ends, but its calls have the time that they had before."""
        self._drain_deadline.withdraw_notice()
        if self.serving is not None:
            self.serving.withdraw_preemption()

    def stop(self, reason: str) -> None:
        """End now."""
        if self.is_starting and not self._ending.is_set():
            self._start.cut_short()
        self._end()
        self.kill(reason or "stopped", Fault.PLATFORM)

    def tick(self, at: float) -> None:
        """See to its calls, and log the number of dropped lines. Once a second."""
        if self.serving is not None:
            self.serving.tick(at)
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
                connection = self._hand_over(blank)
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
        self._manifest = self._log.manifest = manifest
        self.function = f"{manifest.tenant}:{manifest.app}.{manifest.function}"
        self._meter.set_owner(manifest, self.version, self.id)
        self._meter.enter(LeaseState.PROVISIONING)

    def _hand_over(self, blank: Blank) -> GuestConnection:
        """Give the sandbox to this container, which gets its lines and its guest's frames."""
        self._log.take(blank.tap)
        self._connection = blank.hand_over(self._on_frame)
        self._enter(ContainerState.LOADING)
        self._meter.enter(LeaseState.LOADING)
        return self._connection

    def _open(self, blank: Blank, connection: GuestConnection, manifest: Manifest) -> None:
        if blank.exit is not None:
            raise StartFailed(self.reason, RemoteError("ContainerDied", self.reason))
        self.serving = ContainerServing(
            self,
            manifest.spec,
            blank,
            connection,
            calls=self._calls,
            meter=self._meter,
            stop_grace_s=self._stop_grace_s,
            clock=self._clock,
        )
        blank.tap.running = self.serving.runner.only_call
        connection.set_frame_limit(frame_limit(manifest.spec))
        load_s = sum(self._start.timeline.values()) / 1000
        self.parking.open(blank.sandbox, connection, load_s=load_s, has_hooks=self._start.has_park_hooks)
        self._serve()

    def _serve(self) -> None:
        """Take calls from now on."""
        self._calls.slots.open(self.id, self.version, self.most_slots)
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
                    if self.serving is not None:
                        self.serving.resume(self._clock())
                    self.timeline = {UNPARKED: round((self._clock() - self._born_at) * 1000, 3)}
                    self._serve()
            except CannotPark as error:
                self._log.log(str(error))
                self.drain(LEAVE_S, str(error))

    async def _shut_down(self) -> None:
        if self._kill_reason:
            return
        try:
            await self._drain_deadline.wait_idle()
        except TimeoutError:
            self.kill(f"drained: its calls had not ended in time ({self.reason})", Fault.PLATFORM)
            return
        if self._start.blank is None or self._connection is None or self._start.blank.exit is not None:
            return
        within_s = self.parking.thaw_to_leave()
        try:
            self._connection.send(guest.Leave())
            leave_s = self.serving.leave_s(self._clock()) if self.serving is not None else LEAVE_S
            async with asyncio.timeout(within_s or leave_s):
                await self._dead.wait()
        except (GuestGone, TimeoutError):
            self.kill("its exit hooks did not end in time")

    async def _destroy(self) -> None:
        self._end()
        self.reason = self.reason or self._kill_reason or "a mistake of the platform"
        self._calls.slots.drain(self.id)
        self._provisioner.close_network(self.id)
        await self._start.close()
        if self._start.blank is not None:
            await self._start.blank.destroy()
        if self.serving is not None:  # if even the kernel could not end it, its callers must not wait
            self.serving.runner.on_death(self.reason, self._clock())
        self._calls.slots.close(self.id)
        self._set_gone()
        self._gone.set()
        self._provisioner.container_changed()

    # -- events of the guest and the sandbox --------------------------------------------------------------------

    def _on_frame(self, frame: Any) -> None:
        if self.serving is not None:
            is_known = self.serving.on_frame(frame, self._clock())
            if not is_known and not (isinstance(frame, guest.HooksRan) and self.parking.answer(frame)):
                self._kill_unexpected(frame)
        elif not self._start.on_frame(frame):
            self._kill_unexpected(frame)
        elif self.state is ContainerState.LOADING and self._start.is_warming:
            self._enter(ContainerState.WARMING)

    def _on_exit(self, end: SandboxExit) -> None:
        in_order = self.state is ContainerState.DRAINING and not self.held and end.reason == "exited"
        if not in_order:
            broken = self._start.blank.broken if self._start.blank else ""
            killed = end.reason == "killed" and (self._kill_reason or broken)
            reason = killed or describe(end, self._provisioner.limits(self._manifest))
            if self.state is not ContainerState.GONE:  # else a failed start has set its reason
                self.reason = reason
            self._log.log(f"the container has ended: {reason}")
        self._start.on_exit(self.reason)
        self.parking.on_exit()
        if self.serving is not None:
            self.serving.runner.on_death(self.reason, self._clock())
            self._set_gone()
        self._calls.slots.close(self.id)
        self._drain_deadline.on_idle()
        self._end()
        self._dead.set()

    def on_idle(self) -> None:
        """It holds no call any more."""
        self._idle_since_at = self._clock()
        if self._ending.is_set():
            self._drain_deadline.on_idle()

    # -- small steps --------------------------------------------------------------------------------------------

    def _end(self) -> None:
        self._ending.set()
        self._woken.set()

    def _kill_unexpected(self, frame: Any) -> None:
        self.kill_untrusted(f"the guest sent {type(frame).__name__} while it was {self.state.value}")

    def kill_untrusted(self, reason: str) -> None:
        if not self._kill_reason:
            self.kill(reason)

    def kill(self, reason: str, fault: Fault = Fault.TENANT) -> None:
        if not self._kill_reason:
            self._kill_reason, self._meter.fault_of_death = reason, fault
        self._end()
        self._calls.slots.drain(self.id)
        if self.serving is not None:
            self.serving.runner.halt()
        if self._start.blank is not None:
            self._start.blank.sandbox.kill()

    def _fail(self, failed: StartFailed) -> None:
        self.reason, self.error = failed.reason, failed.error
        log.warning("a container did not become ready", container=self.id, version=self.version, reason=self.reason)
        if self._start.blank is None and failed.error is not None:
            self._log.log(failed.reason)
        self._set_gone()

    def _set_gone(self) -> None:
        if self.state is not ContainerState.GONE:
            self.state = ContainerState.GONE
            self._meter.release()
            self._calls.credits.container_gone(self, self._clock())
            if self.serving is not None:
                self.serving.close()

    def _enter(self, state: ContainerState, reason: str = "") -> None:
        self.state, self.reason = state, reason
        self._calls.credits.publish_soon(self)
