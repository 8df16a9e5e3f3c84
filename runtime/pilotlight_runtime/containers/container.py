"""One container, from its bind to its end.

    BINDING   a blank is taken, or a sandbox started; the files are verified and linked into it
    LOADING   the guest imports, enters, checks
    READY     calls run
    DRAINING  what is held ends, exit hooks run
    GONE      everything is removed, and the slice is free again

One task (`live`) leads through these; the guest's frames and the sandbox's end come in between as plain calls.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import structlog

from pilotlight_core.host.blobs import BlobsDown
from pilotlight_core.host.signing import NoKey
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.agent_messages import (
    Bind,
    ContainerReport,
    ContainerState,
    RemoteError,
    Run,
    SliceKind,
    SliceReport,
)
from pilotlight_core.model.messages.usage import LeaseState
from pilotlight_core.model.spec import Manifest
from pilotlight_runtime.calls.accepted_call import AcceptedCall
from pilotlight_runtime.calls.call_runner import CallRunner, truncated_error
from pilotlight_runtime.containers.blank import Blank, BlankDied
from pilotlight_runtime.containers.container_io import ContainerIO
from pilotlight_runtime.containers.container_services import NodeServices
from pilotlight_runtime.containers.resource_limits import describe, frame_limit, limits_of
from pilotlight_runtime.guest import frames as guest
from pilotlight_runtime.guest.guest_connection import GuestGone
from pilotlight_runtime.logs.log_shipper import LogKey
from pilotlight_runtime.metering.work_log import WorkKey
from pilotlight_runtime.sandbox.sandbox_errors import SandboxError
from pilotlight_runtime.sandbox.sandbox_port import SandboxExit

log = structlog.get_logger(__name__)

FETCH_S = 300.0
"""What a start may take before the function's own bound is known: blobs have to come from somewhere."""
LEAVE_S = 10.0
"""For exit hooks."""


class StartFailed(Exception):
    """It will not become ready. `error` is the tenant's to mend; without one it is the platform's."""

    def __init__(self, reason: str, error: RemoteError | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.error = error


class Container:
    """A container on one slice."""

    def __init__(self, bind: Bind, part: SliceReport, services: NodeServices) -> None:
        self.id = bind.container
        self.version = bind.version
        self.tenant = bind.tenant
        self.function = bind.function
        self.slice = part.id
        self.state = ContainerState.BINDING
        self.timeline: dict[str, float] = {}
        self.reason = ""
        self.error: RemoteError | None = None
        self.calls = 0
        self.runner: CallRunner | None = None
        self._bind = bind
        self._part = part
        self._services = services
        self._clock = services.clock
        self._meter = services.metering.slice(part.id)
        self._manifest: Manifest | None = None
        self._blank: Blank | None = None
        self._rim: ContainerIO | None = None
        self._born = self._idle_since = self._clock()
        self._start: asyncio.Timeout | None = None
        self._loaded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._loaded.add_done_callback(lambda loaded: loaded.cancelled() or loaded.exception())
        self._why = ""  # what it was killed for
        self._forming = False
        self._going = asyncio.Event()  # it shall end, or has
        self._quiet = asyncio.Event()  # it holds no call any more
        self._dead = asyncio.Event()
        self._gone = asyncio.Event()
        self._drain_by = 0.0

    # -- how it is ----------------------------------------------------------------------------------------------

    @property
    def slots(self) -> int:
        """How many calls it holds at most; 0 until that is known."""
        return self._manifest.spec.slots if self._manifest else 0

    @property
    def held(self) -> tuple[str, ...]:
        """The calls that occupy its slots."""
        return self.runner.held if self.runner else ()

    @property
    def batch_room(self) -> int:
        """Items that a batch now forming could still take."""
        return self.runner.batch_room if self.runner else 0

    @property
    def is_starting(self) -> bool:
        """Whether it needs the processors to become ready."""
        return self.state in (ContainerState.BINDING, ContainerState.LOADING)

    def report(self, at: float) -> ContainerReport:
        """How it is, for everybody."""
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
            age_s=at - self._born,
            idle_s=0.0 if self.held else at - self._idle_since,
            calls=self.calls,
            reason=self.reason,
            timeline=self.timeline,
            memory_bytes=self._blank.sandbox.memory_peak_bytes() if self._blank else 0,
        )

    # -- commands, and the clock --------------------------------------------------------------------------------

    def take(self, run: Run, at: float, received: float) -> None:
        """A call that the slot table has accepted."""
        assert self.runner is not None  # noqa: S101 - only ready containers have slots
        self.calls += 1
        self.runner.take(run, at, received)
        if self._forms():
            self._services.credits.changed(self)

    def holds(self, call: str) -> bool:
        """Whether a run of this call is here."""
        return self.runner is not None and self.runner.holds(call)

    def window(self, call: str, upto: int, at: float) -> None:
        """The origin has passed on a stream's chunks."""
        if self.runner is not None:
            self.runner.window(call, upto, at)

    def cancel(self, call: str, reason: str, at: float) -> None:
        """Nobody wants a call's answer any more."""
        if self.runner is not None:
            self.runner.cancel(call, reason, at)

    def cancel_all_of(self, gateway: str, at: float) -> None:
        """An origin is gone."""
        if self.runner is not None:
            for call in self.runner.calls_of(gateway):
                self.runner.cancel(call, f"the gateway {gateway} is gone", at)

    def sweep(self, at: float) -> None:
        """Every few 10 ms."""
        if self.runner is not None and self.state is not ContainerState.GONE:
            self.runner.sweep(at)

    def drain(self, within: float, reason: str) -> None:
        """Take nothing new, end what is held within so many seconds, then be gone."""
        if self.state is ContainerState.READY:
            self._drain_by = self._clock() + within
            self._enter(ContainerState.DRAINING, reason)
            self._services.slots.drain(self.id)
            self._metered(LeaseState.DRAINING)
            if self.runner is not None:
                self.runner.drain(self._clock())
                if self.runner.idle:
                    self._quiet.set()
            self._going.set()
        elif self.is_starting:
            self.stop(reason)

    def stop(self, reason: str) -> None:
        """Be gone now."""
        if self.is_starting and self._start is not None and not self._going.is_set() and not self._start.expired():
            self._start.reschedule(asyncio.get_running_loop().time())
        self._going.set()
        self._kill(reason or "stopped")

    def second(self, at: float) -> None:
        """Once a second."""
        if self.runner is not None:
            self.runner.review(at)
        if self._blank is not None:
            self._blank.tap.tick(at)

    async def wait_gone(self) -> None:
        """Wait until everything of it is removed."""
        await self._gone.wait()

    # -- its life -----------------------------------------------------------------------------------------------

    async def live(self) -> None:
        """From bind to gone."""
        try:
            if await self._started():
                await self._going.wait()
                await self._let_go()
        finally:
            await self._bury()

    async def _started(self) -> bool:
        try:
            if self._going.is_set():
                raise StartFailed(self._why)
            async with asyncio.timeout(FETCH_S) as self._start:
                await self._become_ready()
            return True
        except TimeoutError:
            bound = self._manifest.spec.startup_timeout if self._manifest else FETCH_S
            text = f"not ready within {bound:g} s"
            self._failed(self._why or text, None if self._why else RemoteError("StartupTimeout", text))
        except StartFailed as failed:
            self._failed(failed.reason, failed.error)
        except (
            SandboxError,
            BlobsDown,
            NoKey,
            BlankDied,
            OSError,
        ) as error:  # not the tenant's doing: no error to show him
            self._failed(f"could not be started: {error}", None)
        except PilotlightError as error:
            self._failed(error.detail, RemoteError(type(error).__name__, error.detail))
        return False

    async def _become_ready(self) -> None:
        began = self._clock()
        manifest = await self._services.stager.manifest(self._bind)
        self._know(manifest)
        began = self._step("manifest", began)
        blank = self._blank = await self._take_blank(manifest)
        blank.on_exit = self._on_exit
        was_ready = blank.is_ready
        # A new sandbox starts while the files are staged: its step is what that left of it.
        began = self._step("blank", began) if was_ready else self._clock()
        await self._services.stager.stage(manifest, blank.code)
        began = self._step("stage", began)
        if not was_ready:
            await blank.wait_ready()
            self._step("sandbox", began)
        await self._load(blank, manifest)

    async def _take_blank(self, manifest: Manifest) -> Blank:
        limits = limits_of(manifest.spec)
        if self._part.kind is SliceKind.CPU:
            return await self._services.pool.take(limits)
        return await self._services.pool.start(limits, self._services.devices.access(self._part.id))

    def _know(self, manifest: Manifest) -> None:
        """The manifest is verified: from here on it is the tenant's time."""
        if manifest.base != self._services.pool.base.name:
            text = f"this node has no base environment {manifest.base!r}"
            raise StartFailed(text, RemoteError("UnknownBase", text))
        self._manifest = manifest
        self.function = f"{manifest.tenant}:{manifest.app}.{manifest.function}"
        self._metered(LeaseState.LOADING)
        if self._start is not None:
            self._start.reschedule(asyncio.get_running_loop().time() + manifest.spec.startup_timeout)

    async def _load(self, blank: Blank, manifest: Manifest) -> None:
        topic = LogKey(manifest.tenant, manifest.app, manifest.function)
        blank.tap.container = self.id
        blank.tap.sink = lambda line: self._services.shipper.offer(topic, line)
        blank.on_frame = self._on_frame
        self._enter(ContainerState.LOADING)
        try:
            access = self._services.devices.access(self._part.id)
            blank.send(guest.Load(spec=manifest.spec, root=str(blank.root), env=dict(access.env)))
        except GuestGone:
            pass  # its end is on the way
        await self._loaded
        self._open(blank, manifest)

    def _open(self, blank: Blank, manifest: Manifest) -> None:
        """Calls may come."""
        if blank.exit is not None:
            raise StartFailed(self.reason, RemoteError("ContainerDied", self.reason))
        worker = WorkKey(container=self.id, version=self.version, slice=self.slice)
        self._rim = ContainerIO(
            services=self._services,
            blank=blank,
            meter=self._meter,
            freed=self._freed,
            kill=self._kill,
            ran=partial(self._services.work.add, worker),
        )
        self.runner = self._rim.runner = CallRunner(manifest.spec, self.id, self._rim)
        blank.tap.running = self.runner.only_call
        blank.take_frames_of(frame_limit(manifest.spec))
        self._services.slots.open(self.id, self.version, manifest.spec.slots)
        self._idle_since = self._clock()
        self._metered(LeaseState.IDLE)
        self._enter(ContainerState.READY)
        self._services.pool.stir()

    async def _let_go(self) -> None:
        """End what is held, run the exit hooks, each within its bound."""
        if self._why:
            return
        try:
            async with asyncio.timeout(max(0.0, self._drain_by - self._clock())):
                await self._quiet.wait()
        except TimeoutError:
            self._kill(f"drained: its calls had not ended in time ({self.reason})")
            return
        if self._blank is None or self._blank.exit is not None:
            return
        try:
            self._blank.send(guest.Leave())
            async with asyncio.timeout(LEAVE_S):
                await self._dead.wait()
        except (GuestGone, TimeoutError):
            self._kill("its exit hooks did not end in time")

    async def _bury(self) -> None:
        self._going.set()
        self.reason = self.reason or self._why or "a mistake of the platform"
        self._services.slots.drain(self.id)
        if self._blank is not None:
            await self._blank.bury()
        if self.runner is not None:  # if even the kernel could not end it, its callers must not wait
            self.runner.died(self.reason, self._clock())
        self._services.slots.close(self.id)
        self._over()
        self._gone.set()

    # -- what comes in between ----------------------------------------------------------------------------------

    def _on_frame(self, frame: Any) -> None:
        at = self._clock()
        runner = self.runner
        if runner is None:
            self._on_start_frame(frame)
        elif isinstance(frame, guest.Result):
            runner.answered(frame, at)
        elif isinstance(frame, guest.ChunkOut):
            runner.chunk(frame, at)
        elif isinstance(frame, guest.BatchResult):
            runner.batch_answered(frame, at)
        else:
            self._distrust(f"the guest sent {type(frame).__name__} while it was {self.state.value}")

    def _on_start_frame(self, frame: Any) -> None:
        if isinstance(frame, guest.LoadStep):
            self._note_step(frame)
        elif isinstance(frame, guest.Loaded) and not self._loaded.done():
            self._loaded.set_result(None)
        elif isinstance(frame, guest.LoadError) and not self._loaded.done():
            error, step = truncated_error(frame.error), frame.step if frame.step in guest.STEPS else "start"
            self._say(f"{step} failed: {error.type}: {error.message}")
            self._loaded.set_exception(StartFailed(f"{step} failed", error))
        else:
            self._distrust(f"the guest sent {type(frame).__name__} while it was {self.state.value}")

    def _note_step(self, step: guest.LoadStep) -> None:
        """The timeline is told to everybody: each step of it once, and no longer than it can have taken."""
        if step.name not in guest.STEPS or step.name in self.timeline:
            self._distrust("the guest told of a step that there is not")
            return
        longest = (self._clock() - self._born) * 1000
        self.timeline[step.name] = round(step.ms if 0 <= step.ms <= longest else longest, 3)
        self._services.credits.changed(self)

    def _on_exit(self, end: SandboxExit) -> None:
        in_order = self.state is ContainerState.DRAINING and not self.held and end.reason == "exited"
        if not in_order:
            killed = end.reason == "killed" and (self._why or (self._blank.broken if self._blank else ""))
            reason = killed or describe(end, self._manifest.spec if self._manifest else None)
            if self.state is not ContainerState.GONE:  # a start that failed has said why
                self.reason = reason
            self._say(f"the container has ended: {reason}")
        if not self._loaded.done():
            self._loaded.set_exception(StartFailed(self.reason, RemoteError("ContainerDied", self.reason)))
        if self.runner is not None:
            self.runner.died(self.reason, self._clock())
            self._over()
        self._services.slots.close(self.id)
        self._quiet.set()
        self._going.set()
        self._dead.set()

    def _freed(self, held: AcceptedCall) -> None:
        self._services.slots.release(held.run.call, held.run.grant)
        error = held.verdict.error if held.verdict is not None else None
        if error is not None and self._blank is not None:
            # A caller that is not the owner is told a code only; and an owner looks for it in the log, whoever called.
            self._blank.tap.failed(held.run.call, error)
        if self._forms():
            self._services.credits.changed(self)
        elif held.run.home != held.run.gateway:
            self._services.credits.freed(self, held.run.home)
        if self.runner is not None and self.runner.idle:
            self._idle_since = self._clock()
            if self._going.is_set():
                self._quiet.set()

    # -- small steps --------------------------------------------------------------------------------------------

    def _forms(self) -> bool:
        """Whether a batch has begun to form, or does not any more, since this was last asked."""
        before, self._forming = self._forming, self.batch_room > 0
        return before is not self._forming

    def _distrust(self, reason: str) -> None:
        """The guest breaks the rules. What it has sent until it is dead is not worth a second kill."""
        if not self._why:
            self._kill(reason)

    def _kill(self, reason: str) -> None:
        self._why = self._why or reason
        self._going.set()
        self._services.slots.drain(self.id)
        if self.runner is not None:
            self.runner.halt()
        if self._blank is not None:
            self._blank.sandbox.kill()

    def _failed(self, reason: str, error: RemoteError | None) -> None:
        self.reason, self.error = reason, error
        log.warning("a container did not become ready", container=self.id, version=self.version, reason=reason)
        self._over()

    def _over(self) -> None:
        """It has ended, though its remains may take a moment to remove."""
        if self.state is not ContainerState.GONE:
            self.state = ContainerState.GONE
            self._meter.transition(LeaseState.FREE, self._services.boot_ns())
            self._services.credits.gone(self, self._clock())
            if self._rim is not None:
                self._rim.close()

    def _enter(self, state: ContainerState, reason: str = "") -> None:
        self.state, self.reason = state, reason
        self._services.credits.changed(self)

    def _step(self, name: str, began: float) -> float:
        """A step of the start has ended; the next one begins now."""
        now = self._clock()
        self.timeline[name] = round(self.timeline.get(name, 0.0) + (now - began) * 1000, 3)
        self._services.credits.changed(self)
        return now

    def _metered(self, state: LeaseState) -> None:
        manifest = self._manifest
        assert manifest is not None  # noqa: S101 - nobody pays before it is known who
        self._meter.transition(
            state,
            self._services.boot_ns(),
            tenant=manifest.tenant,
            app=manifest.app,
            function=manifest.function,
            version=self.version,
            container=self.id,
        )

    def _say(self, sentence: str) -> None:
        if self._blank is not None and self._manifest is not None:
            self._blank.tap.say(sentence)
