"""The start of one container: from its bind to a guest that has loaded the tenant's function.

manifest   fetched, and its signature verified; what this node cannot give is refused
packages   what its requirements were locked to is built, if it has any and they are not there
blank      one that is ready is taken, or a sandbox started
stage      the verified files are linked into it
secrets    the present values are asked for, if the version has any
load       the guest imports, enters, runs its warm-up examples, checks itself, and says so
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from pilotlight_core.host.blobs import BlobMissing, BlobsDown, NoBlobStore
from pilotlight_core.host.signing import BadSignature, NoKey
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.agent_questions import MOST_AT_ONCE
from pilotlight_core.model.messages.call_messages import MISCONFIGURED, RemoteError
from pilotlight_core.model.messages.node_messages import Bind, SliceReport
from pilotlight_core.model.rehearsals.rehearsal import Rehearsal
from pilotlight_core.model.secrets.secret_masks import SecretMask
from pilotlight_core.model.secrets.secret_uses import secrets_of
from pilotlight_core.model.spec import Manifest
from pilotlight_runtime.calls.call_errors import truncated_error
from pilotlight_runtime.containers.blanks.blank import Blank, BlankDied, network_unknown
from pilotlight_runtime.containers.files.bundle import CannotVerify, SignatureRefused
from pilotlight_runtime.containers.files.compile_cache import CompileHandover
from pilotlight_runtime.containers.files.disk_room import NoDiskRoom
from pilotlight_runtime.containers.host_budget import broken_promise
from pilotlight_runtime.containers.provisioner import Provisioner
from pilotlight_runtime.containers.secret_requests import LoadedSecrets, SecretsRefused
from pilotlight_runtime.environments.build_sandbox import BuildFailed
from pilotlight_runtime.guest import frames as guest
from pilotlight_runtime.guest.guest_connection import GuestConnection, GuestGone
from pilotlight_runtime.sandbox.sandbox_errors import SandboxError
from pilotlight_runtime.sandbox.sandbox_port import SandboxExit

BUILD_FAILED = "RequirementsNotBuilt"
"""The type of the error of a start without its packages."""
FETCH_S = 300.0
"""Bounds a start until the manifest, and with it the function's own bound, is known."""


class StartFailed(Exception):
    """The container will not become ready. `error` is what the tenant can mend; None: the platform's fault."""

    def __init__(self, reason: str, error: RemoteError | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.error = error


START_ERRORS = (StartFailed, SandboxError, BlobsDown, BlankDied, BuildFailed, OSError, PilotlightError)
"""What a start may raise, beside what would be a mistake of the platform."""


def failure_of(error: Exception) -> StartFailed:
    """Which failure of a start one of `START_ERRORS` is."""
    if isinstance(error, StartFailed):
        return error
    if isinstance(error, BuildFailed):
        reason = f"its requirements could not be built: {error}"
        return StartFailed(reason, RemoteError(BUILD_FAILED, reason) if error.is_tenants else None)
    if isinstance(error, SignatureRefused):
        reason = f"could not be started: {error.detail}"
        return StartFailed(reason, RemoteError("SignatureRefused", reason))
    if isinstance(error, (BlobMissing, NoBlobStore, NoKey, BadSignature, CannotVerify, NoDiskRoom)):
        reason = f"could not be started: {error.detail}"
        return StartFailed(reason, RemoteError(MISCONFIGURED, reason))
    if isinstance(error, (SandboxError, BlobsDown, BlankDied, OSError)):
        return StartFailed(f"could not be started: {error}")  # not the tenant's fault: no error is shown
    assert isinstance(error, PilotlightError)  # noqa: S101 - the last of START_ERRORS
    return StartFailed(error.detail, RemoteError(type(error).__name__, error.detail))


class ContainerStart:
    """`changed` is called when `timeline` has a further step, `kill` when the guest breaks a rule."""

    def __init__(
        self,
        bind: Bind,
        part: SliceReport,
        *,
        provisioner: Provisioner,
        changed: Callable[[], None],
        kill: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self.timeline: dict[str, float] = {}
        """step -> how long it took, in ms."""
        self.blank: Blank | None = None
        self.secrets = ""
        """Names the values that it was loaded with; "": it has none, or has not yet."""
        self.has_park_hooks = False
        """Whether its guest runs hooks when it is parked and unparked."""
        self._packages = ""
        self._bind = bind
        self._part = part
        self._provisioner = provisioner
        self._changed = changed
        self._kill = kill
        self._clock = clock
        self._born_at = self._step_began_at = clock()
        self._bound_s = FETCH_S
        self._timeout: asyncio.Timeout | None = None
        self._rehearsal = Rehearsal()
        self._ends_at = 0.0
        """By the event loop's clock."""
        self.is_warming = False
        """Whether the guest has entered, and now warms up or checks itself."""
        self._loaded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._loaded.add_done_callback(self._on_loaded)
        self._handover: CompileHandover | None = None
        self._pieces: asyncio.Queue[guest.CompilePiece | None] = asyncio.Queue()
        """One at most; None: there are no more."""
        self._is_refusing = False
        """Whether no further piece is taken."""

    def bound(self) -> asyncio.Timeout:
        """Bounds what runs within it: by `FETCH_S`, later by the function's own `startup_timeout`."""
        self._step_began_at = self._clock()
        self._timeout = asyncio.timeout(FETCH_S)
        return self._timeout

    def cut_short(self) -> None:
        """Let its time be over now."""
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time())

    def late(self) -> StartFailed:
        """The failure of a start whose time is over."""
        text = f"not ready within {self._bound_s:g} s"
        if self._is_checking:
            text = f"its check had not ended after {self._rehearsal.check_timeout:g} s"
        return StartFailed(text, RemoteError("StartupTimeout", text))

    async def fetch_manifest(self) -> Manifest:
        """The verified manifest; its function's own bound counts from now on.

        Raises:
            StartFailed: this node cannot run the version, or was promised otherwise.
        """
        manifest = await self._provisioner.manifest(self._bind)
        if (lack := self._provisioner.refusal(manifest)) is not None:
            raise StartFailed(lack.message, lack)
        if why := broken_promise(manifest.spec, self._bind.host):
            raise StartFailed(f"could not be started: {why}")
        self._bound_s = manifest.spec.startup_timeout
        self._ends_at = asyncio.get_running_loop().time() + self._bound_s
        if self._timeout is not None:
            self._timeout.reschedule(self._ends_at)
        self._end_step("manifest")
        return manifest

    async def prepare(self, manifest: Manifest, on_exit: Callable[[SandboxExit], None]) -> Blank:
        """A sandbox that has the version's files, and whose guest is ready to load."""
        if manifest.lock is not None and manifest.lock.packages:
            await self._provisioner.build_packages(manifest)
            self._end_step("packages")
        blank = self.blank = await self._provisioner.blank(manifest, self._part)
        blank.on_exit = on_exit
        was_ready = blank.is_ready
        if was_ready:
            self._end_step("blank")
        else:  # it starts while the files are staged: its step is what remains after that
            self._step_began_at = self._clock()
        await self._provisioner.stage(self._bind, manifest, blank)
        self._packages = await self._provisioner.stage_packages(manifest, blank)
        self._end_step("stage")
        if not was_ready:
            await blank.wait_ready()
            self._end_step("sandbox")
        return blank

    async def load(self, manifest: Manifest, blank: Blank, connection: GuestConnection) -> None:
        """Have the guest load the function.

        Raises:
            StartFailed: it could not, or the sandbox ended.
        """
        network = self._provisioner.open_network(self._bind, manifest, blank)
        if network and (why := network_unknown(blank.frames)):
            text = f"could not be started: {why}"
            raise StartFailed(text, RemoteError(MISCONFIGURED, text))
        if manifest.spec.rehearsal is not UNSET:
            if blank.frames < guest.KNOWS_REHEARSAL:
                text = "could not be started: its base environment is of a release without warmup= and check="
                raise StartFailed(text, RemoteError(MISCONFIGURED, text))
            self._rehearsal = manifest.spec.rehearsal
        self._handover = self._provisioner.handover(self._bind)
        if self._packages and blank.frames < guest.KNOWS_PACKAGES:
            text = f"the base environment {manifest.base} is of a release that knows no requirements"
            raise StartFailed(f"could not be started: {text}", RemoteError(MISCONFIGURED, text))
        secrets = await self._fetch_secrets(manifest, blank)
        env, root = dict(self._provisioner.env(self._part)), str(blank.root)
        try:
            load = guest.Load(
                spec=manifest.spec,
                root=root,
                env=env,
                network=network,
                nested=MOST_AT_ONCE,
                secrets=secrets.places,
                compiled=str(blank.compiled_inside),
                compile_into=str(blank.compile_into),
                packages=self._packages,
                takes_reports=True,
                takes_chunks=True,
            )
            connection.send(load)
            self.secrets = secrets.revision
        except GuestGone:
            pass  # the sandbox's exit follows
        await self._take_compiled(self._handover, connection)
        await self._loaded
        await self._handover.commit()

    async def close(self) -> None:
        """Let go of what was handed over in vain."""
        if self._handover is not None:
            await self._handover.discard()

    async def _take_compiled(self, handover: CompileHandover, connection: GuestConnection) -> None:
        """Take what the guest hands over of what it has compiled, until it has loaded or failed."""
        while (piece := await self._pieces.get()) is not None:
            go_on = await handover.take(piece)
            self._is_refusing = not go_on
            try:
                connection.send(guest.CompilePieceTaken(go_on=go_on))
            except GuestGone:
                return

    async def _fetch_secrets(self, manifest: Manifest, blank: Blank) -> LoadedSecrets:
        """The values for this load, which its log hides from now on. Raises StartFailed."""
        if manifest.spec.resumable is not UNSET and blank.frames < guest.KNOWS_RESUME:
            reason = f"the base environment {manifest.base} is of a release that knows no resumable streams"
            raise StartFailed(f"could not be started: {reason}", RemoteError(MISCONFIGURED, reason))
        if manifest.spec.engine is not UNSET and blank.frames < guest.KNOWS_ENGINE:
            reason = f"the base environment {manifest.base} is of a release that knows no engines"
            raise StartFailed(f"could not be started: {reason}", RemoteError(MISCONFIGURED, reason))
        if not secrets_of(manifest.spec):
            return LoadedSecrets()
        if blank.frames < guest.KNOWS_SECRETS:
            reason = f"the base environment {manifest.base} is of a release that knows no secrets"
            raise StartFailed(f"could not be started: {reason}", RemoteError(MISCONFIGURED, reason))
        self._step_began_at = self._clock()
        try:
            secrets = await self._provisioner.secrets(self._bind, manifest)
            blank.tap.hide(SecretMask(secrets.places.values()))
        except (SecretsRefused, ValueError) as error:  # ValueError: more lines than a mask takes
            is_tenants = not isinstance(error, SecretsRefused) or error.is_tenants
            reason = f"could not be started: {error}"
            raise StartFailed(reason, RemoteError(MISCONFIGURED, reason) if is_tenants else None) from None
        self._end_step("secrets")
        return secrets

    def on_frame(self, frame: Any) -> bool:
        """Take a frame of a guest that loads; False if none such may come now."""
        if isinstance(frame, guest.LoadStep):
            self._note_step(frame)
        elif isinstance(frame, guest.CompilePiece) and self._takes_piece():
            self._pieces.put_nowait(frame)
        elif isinstance(frame, guest.Loaded) and not self._loaded.done():
            self.has_park_hooks = frame.parks
            self._loaded.set_result(None)
        elif isinstance(frame, guest.LoadError) and not self._loaded.done():
            error, step = truncated_error(frame.error), frame.step if frame.step in guest.STEPS else "start"
            if self.blank is not None:
                self.blank.tap.log(f"{step} failed: {error.type}: {error.message}")
                if step in ("warmup", "check") and error.traceback:
                    self.blank.tap.log_failure("", error)
            self._loaded.set_exception(StartFailed(f"{step} failed", error))
        elif not isinstance(frame, guest.EngineReportOut):  # an engine tells more once it serves
            return False
        return True

    def _takes_piece(self) -> bool:
        """Whether the guest may hand over a piece now."""
        return self._pieces.empty() and not self._is_refusing and not self._loaded.done()

    def _on_loaded(self, loaded: asyncio.Future[None]) -> None:
        if not loaded.cancelled():
            loaded.exception()  # retrieved, also when nothing waits for it
        self._pieces.put_nowait(None)

    def on_exit(self, reason: str) -> None:
        """The sandbox has ended: a guest that has not loaded yet never will."""
        if not self._loaded.done():
            self._loaded.set_exception(StartFailed(reason, RemoteError("ContainerDied", reason)))

    def _note_step(self, step: guest.LoadStep) -> None:
        """Enter one of the guest's steps in the public timeline, once and no longer than possible."""
        if step.name not in guest.STEPS or step.name in self.timeline:
            self._kill("the guest reported an unknown step")
            return
        self._bound_check(step.name)
        longest = (self._clock() - self._born_at) * 1000
        self.timeline[step.name] = round(step.ms if 0 <= step.ms <= longest else longest, 3)
        self._changed()

    @property
    def _is_checking(self) -> bool:
        """Whether the guest runs its check, as far as its steps tell."""
        return self._rehearsal.has_check and self.is_warming and self._before_check in self.timeline

    @property
    def _before_check(self) -> str:
        """The step before the check."""
        return "warmup" if self._rehearsal.warmup else "enter"

    def _bound_check(self, ended: str) -> None:
        """After the step before the check, bound the check; after that the start's own bound holds again."""
        if ended == "enter":
            self.is_warming = self._rehearsal.has_check or bool(self._rehearsal.warmup)
        if self._timeout is None or self._timeout.expired() or not self._rehearsal.has_check:
            return
        if ended == self._before_check:
            until = asyncio.get_running_loop().time() + self._rehearsal.check_timeout
            self._timeout.reschedule(min(until, self._ends_at))
        elif ended == "check":
            self.is_warming = False
            self._timeout.reschedule(self._ends_at)

    def _end_step(self, name: str) -> None:
        """Enter a step in the timeline; the next one begins."""
        now = self._clock()
        self.timeline[name] = round((now - self._step_began_at) * 1000, 3)
        self._step_began_at = now
        self._changed()
