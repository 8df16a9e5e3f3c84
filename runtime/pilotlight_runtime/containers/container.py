"""One container, from its bind to its end.

    BINDING   a blank is taken, or a sandbox started; the verified files are linked into it
    LOADING   the guest imports, enters, checks
    READY     calls run
    DRAINING  held calls end, exit hooks run
    GONE      everything is removed, and the slice is free again

The task `Container.run` goes through these; the guest's frames and the sandbox's exit call methods in between.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Any

import structlog

from pilotlight_core.host.blobs import BlobMissing, BlobsDown, NoBlobStore
from pilotlight_core.host.signing import BadSignature, NoKey
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.call_messages import MISCONFIGURED, RemoteError
from pilotlight_core.model.messages.node_messages import (
    STOP_GRACE_S,
    Bind,
    ContainerReport,
    ContainerState,
    SliceReport,
)
from pilotlight_core.model.messages.usage import LeaseState
from pilotlight_core.model.messages.usage_facts import Fault
from pilotlight_core.model.spec import Manifest
from pilotlight_runtime.calls.call_runner import CallRunner, truncated_error
from pilotlight_runtime.calls.node_calls import NodeCalls
from pilotlight_runtime.calls.slot_table import AcceptedCall
from pilotlight_runtime.containers.blank import Blank, BlankDied
from pilotlight_runtime.containers.bundle import CannotVerify
from pilotlight_runtime.containers.container_io import ContainerIO
from pilotlight_runtime.containers.disk_room import NoDiskRoom
from pilotlight_runtime.containers.host_budget import broken_promise
from pilotlight_runtime.containers.provisioner import Provisioner
from pilotlight_runtime.containers.resource_limits import describe, frame_limit
from pilotlight_runtime.guest import frames as guest
from pilotlight_runtime.guest.guest_connection import GuestConnection, GuestGone
from pilotlight_runtime.logs.log_shipper import LogKey, LogShipper
from pilotlight_runtime.metering.container_meter import ContainerMeter
from pilotlight_runtime.sandbox.sandbox_errors import SandboxError
from pilotlight_runtime.sandbox.sandbox_port import SandboxExit

log = structlog.get_logger(__name__)

FETCH_S = 300.0
"""Bounds a start until the manifest, and with it the function's own bound, is known."""
LEAVE_S = 10.0
"""Bounds the exit hooks."""
RETIRE_MARGIN_S = 5.0
"""Beyond the function's timeout, after which none of its calls can still run."""


class StartFailed(Exception):
    """The container will not become ready. `error` is what the tenant can mend; None: the platform's fault."""

    def __init__(self, reason: str, error: RemoteError | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.error = error


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
        stop_grace_s: float = STOP_GRACE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.id = bind.container
        self.version = bind.version
        self.tenant = bind.tenant
        self.function = bind.function
        self.slice = part.id
        self.state = ContainerState.BINDING
        self.timeline: dict[str, float] = {}
        self.reason = ""
        self.error: RemoteError | None = None
        self.runner: CallRunner | None = None
        self._bind = bind
        self._part = part
        self._provisioner = provisioner
        self._calls = calls
        self._logs = logs
        self._stop_grace_s = stop_grace_s
        self._clock = clock
        self._meter = meter
        self._accepted = 0
        self._manifest: Manifest | None = None
        self._blank: Blank | None = None
        self._connection: GuestConnection | None = None
        self._io: ContainerIO | None = None
        self._born_at = self._idle_since_at = self._clock()
        self._start_timeout: asyncio.Timeout | None = None
        self._loaded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._loaded.add_done_callback(lambda loaded: loaded.cancelled() or loaded.exception())
        self._kill_reason = ""
        self._is_forming = False  # a batch, when this was last asked
        self._ending = asyncio.Event()  # its end was asked for, or has come
        self._idle = asyncio.Event()  # it holds no call any more
        self._dead = asyncio.Event()
        self._gone = asyncio.Event()
        self._drain_until_at = math.inf
        self._drain_timeout: asyncio.Timeout | None = None

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
        return self.state in (ContainerState.BINDING, ContainerState.LOADING)

    def report(self, at: float) -> ContainerReport:
        manifest = self._manifest
        return ContainerReport(
            id=self.id,
            version=self.version,
            tenant=self.tenant,
            app=manifest.app if manifest else "",
            function=manifest.function if manifest else "",
            slice=self.slice,
            state=self.state,
            slots=self.slots,
            running=self.runner.running if self.runner else 0,
            age_s=at - self._born_at,
            idle_s=0.0 if self.held else at - self._idle_since_at,
            calls=self._accepted,
            reason=self.reason,
            timeline=self.timeline,
            memory_bytes=self._blank.sandbox.memory_peak_bytes() if self._blank else 0,
            host=self._bind.host,
        )

    # -- commands, and the clock --------------------------------------------------------------------------------

    def add(self, call: AcceptedCall, at: float) -> None:
        """Run a call that the slot table has accepted."""
        assert self.runner is not None  # noqa: S101 - only ready containers have slots
        self._accepted += 1
        self.runner.add(call, at)
        if self._forming_changed():
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

    def drain(self, within_s: float, reason: str) -> None:
        """Take no new call, end the held ones within `within_s`, then end. A later drain may shorten an earlier one."""
        if self.state in (ContainerState.READY, ContainerState.DRAINING):
            self._shorten_drain(within_s)
        if self.state is ContainerState.READY:
            self._enter(ContainerState.DRAINING, reason)
            self._calls.slots.drain(self.id)
            self._meter.enter(LeaseState.DRAINING)
            if self.runner is not None:
                self.runner.drain(self._clock())
                if self.runner.is_idle:
                    self._idle.set()
            self._ending.set()
        elif self.is_starting:
            self.stop(reason)

    def stop(self, reason: str) -> None:
        """End now."""
        if (
            self.is_starting
            and self._start_timeout is not None
            and not self._ending.is_set()
            and not self._start_timeout.expired()
        ):
            self._start_timeout.reschedule(asyncio.get_running_loop().time())
        self._ending.set()
        self._kill(reason or "stopped", Fault.PLATFORM)

    def tick(self, at: float) -> None:
        """Cancel abandoned calls, end if they do not, and log the number of dropped lines. Once a second."""
        if self.runner is not None:
            self.runner.cancel_abandoned(at)
            self.runner.end_abandoned(at)
        if self._blank is not None:
            self._blank.tap.tick(at)

    async def wait_gone(self) -> None:
        await self._gone.wait()

    # -- its life -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        try:
            if await self._start_up():
                await self._ending.wait()
                await self._shut_down()
        finally:
            await self._destroy()

    async def _start_up(self) -> bool:
        try:
            if self._ending.is_set():
                raise StartFailed(self._kill_reason)
            self._meter.enter(LeaseState.PROVISIONING)
            async with asyncio.timeout(FETCH_S) as self._start_timeout:
                await self._become_ready()
            return True
        except TimeoutError:
            bound = self._manifest.spec.startup_timeout if self._manifest else FETCH_S
            text = f"not ready within {bound:g} s"
            self._fail(self._kill_reason or text, None if self._kill_reason else RemoteError("StartupTimeout", text))
        except StartFailed as failed:
            self._fail(failed.reason, failed.error)
        except (BlobMissing, NoBlobStore, NoKey, BadSignature, CannotVerify, NoDiskRoom) as error:
            reason = f"could not be started: {error.detail}"
            self._fail(reason, RemoteError(MISCONFIGURED, reason))
        except (
            SandboxError,
            BlobsDown,
            BlankDied,
            OSError,
        ) as error:  # not the tenant's fault: no error is shown
            self._fail(f"could not be started: {error}", None)
        except PilotlightError as error:
            self._fail(error.detail, RemoteError(type(error).__name__, error.detail))
        return False

    async def _become_ready(self) -> None:
        began_at = self._clock()
        manifest = await self._provisioner.manifest(self._bind)
        self._set_manifest(manifest)
        began_at = self._step("manifest", began_at)
        blank = self._blank = await self._provisioner.blank(manifest, self._part)
        blank.on_exit = self._on_exit
        was_ready = blank.is_ready
        # A new sandbox starts while the files are staged: its step is what remains after that.
        began_at = self._step("blank", began_at) if was_ready else self._clock()
        await self._provisioner.stage(self._bind, manifest, blank)
        began_at = self._step("stage", began_at)
        if not was_ready:
            await blank.wait_ready()
            self._step("sandbox", began_at)
        await self._load(blank, manifest)

    def _set_manifest(self, manifest: Manifest) -> None:
        """Take the verified manifest; from now on the tenant pays."""
        if (lack := self._provisioner.refusal(manifest)) is not None:
            raise StartFailed(lack.message, lack)
        if why := broken_promise(manifest.spec, self._bind.host):
            raise StartFailed(f"could not be started: {why}")
        self._manifest = manifest
        self.function = f"{manifest.tenant}:{manifest.app}.{manifest.function}"
        self._meter.set_owner(manifest, self.version, self.id)
        self._meter.enter(LeaseState.PROVISIONING)
        if self._start_timeout is not None:
            self._start_timeout.reschedule(asyncio.get_running_loop().time() + manifest.spec.startup_timeout)

    async def _load(self, blank: Blank, manifest: Manifest) -> None:
        topic = LogKey(manifest.tenant, manifest.app, manifest.function)
        blank.tap.container = self.id
        blank.tap.sink = lambda line: self._logs.offer(topic, line)
        connection = self._connection = blank.hand_over(self._on_frame)
        self._enter(ContainerState.LOADING)
        self._meter.enter(LeaseState.LOADING)
        try:
            env = dict(self._provisioner.env(self._part))
            connection.send(guest.Load(spec=manifest.spec, root=str(blank.root), env=env))
        except GuestGone:
            pass  # the sandbox's exit follows
        await self._loaded
        self._open(blank, connection, manifest)

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
        self.runner = CallRunner(manifest.spec, self.id, self._io, stop_grace_s=self._stop_grace_s)
        blank.tap.running = self.runner.only_call
        connection.set_frame_limit(frame_limit(manifest.spec))
        self._calls.slots.open(self.id, self.version, manifest.spec.slots)
        self._idle_since_at = self._clock()
        self._meter.enter(LeaseState.IDLE)
        self._enter(ContainerState.READY)
        self._provisioner.container_changed()

    async def _shut_down(self) -> None:
        if self._kill_reason:
            return
        try:
            async with asyncio.timeout(max(0.0, self._drain_until_at - self._clock())) as self._drain_timeout:
                await self._idle.wait()
        except TimeoutError:
            self._kill(f"drained: its calls had not ended in time ({self.reason})", Fault.PLATFORM)
            return
        if self._blank is None or self._connection is None or self._blank.exit is not None:
            return
        try:
            self._connection.send(guest.Leave())
            async with asyncio.timeout(LEAVE_S):
                await self._dead.wait()
        except (GuestGone, TimeoutError):
            self._kill("its exit hooks did not end in time")

    async def _destroy(self) -> None:
        self._ending.set()
        self.reason = self.reason or self._kill_reason or "a mistake of the platform"
        self._calls.slots.drain(self.id)
        if self._blank is not None:
            await self._blank.destroy()
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
            self._on_start_frame(frame)
        elif isinstance(frame, guest.Result):
            runner.on_result(frame, at)
        elif isinstance(frame, guest.ChunkOut):
            runner.on_chunk(frame, at)
        elif isinstance(frame, guest.BatchResult):
            runner.on_batch_result(frame, at)
        else:
            self._kill_untrusted(f"the guest sent {type(frame).__name__} while it was {self.state.value}")

    def _on_start_frame(self, frame: Any) -> None:
        if isinstance(frame, guest.LoadStep):
            self._note_step(frame)
        elif isinstance(frame, guest.Loaded) and not self._loaded.done():
            self._loaded.set_result(None)
        elif isinstance(frame, guest.LoadError) and not self._loaded.done():
            error, step = truncated_error(frame.error), frame.step if frame.step in guest.STEPS else "start"
            self._log(f"{step} failed: {error.type}: {error.message}")
            self._loaded.set_exception(StartFailed(f"{step} failed", error))
        else:
            self._kill_untrusted(f"the guest sent {type(frame).__name__} while it was {self.state.value}")

    def _note_step(self, step: guest.LoadStep) -> None:
        """Enter one of the guest's steps in the public timeline, once and no longer than possible."""
        if step.name not in guest.STEPS or step.name in self.timeline:
            self._kill_untrusted("the guest reported an unknown step")
            return
        longest = (self._clock() - self._born_at) * 1000
        self.timeline[step.name] = round(step.ms if 0 <= step.ms <= longest else longest, 3)
        self._calls.credits.publish_soon(self)

    def _on_exit(self, end: SandboxExit) -> None:
        in_order = self.state is ContainerState.DRAINING and not self.held and end.reason == "exited"
        if not in_order:
            killed = end.reason == "killed" and (self._kill_reason or (self._blank.broken if self._blank else ""))
            reason = killed or describe(end, self._provisioner.limits(self._manifest))
            if self.state is not ContainerState.GONE:  # else a failed start has set its reason
                self.reason = reason
            self._log(f"the container has ended: {reason}")
        if not self._loaded.done():
            self._loaded.set_exception(StartFailed(self.reason, RemoteError("ContainerDied", self.reason)))
        if self.runner is not None:
            self.runner.on_death(self.reason, self._clock())
            self._set_gone()
        self._calls.slots.close(self.id)
        self._idle.set()
        self._ending.set()
        self._dead.set()

    def _release(self, call: AcceptedCall) -> None:
        self._calls.slots.release(call.call_id, call.grant_number)
        if call.error is not None and self._blank is not None:
            # Callers other than the owner get only a code; the owner finds the error in the log.
            self._blank.tap.log_failure(call.call_id, call.error)
        if self._forming_changed():
            self._calls.credits.publish_soon(self)
        elif call.run.home != call.run.gateway:
            self._calls.credits.slot_freed(self, call.run.home)
        if self.runner is not None and self.runner.is_idle:
            self._idle_since_at = self._clock()
            if self._ending.is_set():
                self._idle.set()

    # -- small steps --------------------------------------------------------------------------------------------

    def _retire(self, reason: str) -> None:
        if self._manifest is not None and self.state is ContainerState.READY:
            self.drain(self._manifest.spec.timeout + RETIRE_MARGIN_S, reason)

    def _shorten_drain(self, within_s: float) -> None:
        until_at = self._clock() + within_s
        if until_at >= self._drain_until_at:
            return
        self._drain_until_at = until_at
        if self._drain_timeout is not None and not self._drain_timeout.expired() and not self._idle.is_set():
            self._drain_timeout.reschedule(asyncio.get_running_loop().time() + within_s)

    def _forming_changed(self) -> bool:
        before, self._is_forming = self._is_forming, self.batch_room > 0
        return before is not self._is_forming

    def _kill_untrusted(self, reason: str) -> None:
        if not self._kill_reason:
            self._kill(reason)

    def _kill(self, reason: str, fault: Fault = Fault.TENANT) -> None:
        if not self._kill_reason:
            self._kill_reason, self._meter.fault_of_death = reason, fault
        self._ending.set()
        self._calls.slots.drain(self.id)
        if self.runner is not None:
            self.runner.halt()
        if self._blank is not None:
            self._blank.sandbox.kill()

    def _fail(self, reason: str, error: RemoteError | None) -> None:
        self.reason, self.error = reason, error
        log.warning("a container did not become ready", container=self.id, version=self.version, reason=reason)
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

    def _step(self, name: str, began_at: float) -> float:
        """Enter a step of the start in the timeline; returns the present instant."""
        now = self._clock()
        self.timeline[name] = round(self.timeline.get(name, 0.0) + (now - began_at) * 1000, 3)
        self._calls.credits.publish_soon(self)
        return now

    def _log(self, sentence: str) -> None:
        if self._blank is not None and self._manifest is not None:
            self._blank.tap.log(sentence)
