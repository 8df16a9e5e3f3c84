"""The start of one container: from its bind to a guest that has loaded the tenant's function.

manifest   fetched, and its signature verified; what this node cannot give is refused
blank      one that is ready is taken, or a sandbox started
stage      the verified files are linked into it
secrets    the present values are asked for, if the version has any
load       the guest imports, enters, checks, and says so
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from pilotlight_core.host.blobs import BlobMissing, BlobsDown, NoBlobStore
from pilotlight_core.host.signing import BadSignature, NoKey
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.agent_questions import MOST_AT_ONCE
from pilotlight_core.model.messages.call_messages import MISCONFIGURED, RemoteError
from pilotlight_core.model.messages.node_messages import Bind, SliceReport
from pilotlight_core.model.secrets.secret_masks import SecretMask
from pilotlight_core.model.secrets.secret_uses import secrets_of
from pilotlight_core.model.spec import Manifest
from pilotlight_runtime.calls.call_errors import truncated_error
from pilotlight_runtime.containers.blanks.blank import Blank, BlankDied, network_unknown
from pilotlight_runtime.containers.files.bundle import CannotVerify
from pilotlight_runtime.containers.files.disk_room import NoDiskRoom
from pilotlight_runtime.containers.host_budget import broken_promise
from pilotlight_runtime.containers.provisioner import Provisioner
from pilotlight_runtime.containers.secret_requests import LoadedSecrets, SecretsRefused
from pilotlight_runtime.guest import frames as guest
from pilotlight_runtime.guest.guest_connection import GuestConnection, GuestGone
from pilotlight_runtime.sandbox.sandbox_errors import SandboxError
from pilotlight_runtime.sandbox.sandbox_port import SandboxExit

FETCH_S = 300.0
"""Bounds a start until the manifest, and with it the function's own bound, is known."""


class StartFailed(Exception):
    """The container will not become ready. `error` is what the tenant can mend; None: the platform's fault."""

    def __init__(self, reason: str, error: RemoteError | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.error = error


START_ERRORS = (StartFailed, SandboxError, BlobsDown, BlankDied, OSError, PilotlightError)
"""What a start may raise, beside what would be a mistake of the platform."""


def failure_of(error: Exception) -> StartFailed:
    """Which failure of a start one of `START_ERRORS` is."""
    if isinstance(error, StartFailed):
        return error
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
        self._bind = bind
        self._part = part
        self._provisioner = provisioner
        self._changed = changed
        self._kill = kill
        self._clock = clock
        self._born_at = self._step_began_at = clock()
        self._bound_s = FETCH_S
        self._timeout: asyncio.Timeout | None = None
        self._loaded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._loaded.add_done_callback(lambda loaded: loaded.cancelled() or loaded.exception())

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
        if self._timeout is not None:
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._bound_s)
        self._end_step("manifest")
        return manifest

    async def prepare(self, manifest: Manifest, on_exit: Callable[[SandboxExit], None]) -> Blank:
        """A sandbox that has the version's files, and whose guest is ready to load."""
        blank = self.blank = await self._provisioner.blank(manifest, self._part)
        blank.on_exit = on_exit
        was_ready = blank.is_ready
        if was_ready:
            self._end_step("blank")
        else:  # it starts while the files are staged: its step is what remains after that
            self._step_began_at = self._clock()
        await self._provisioner.stage(self._bind, manifest, blank)
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
        secrets = await self._fetch_secrets(manifest, blank)
        env, root = dict(self._provisioner.env(self._part)), str(blank.root)
        try:
            load = guest.Load(
                spec=manifest.spec, root=root, env=env, network=network, nested=MOST_AT_ONCE, secrets=secrets.places
            )
            connection.send(load)
            self.secrets = secrets.revision
        except GuestGone:
            pass  # the sandbox's exit follows
        await self._loaded

    async def _fetch_secrets(self, manifest: Manifest, blank: Blank) -> LoadedSecrets:
        """The values for this load, which its log hides from now on. Raises StartFailed."""
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
        elif isinstance(frame, guest.Loaded) and not self._loaded.done():
            self.has_park_hooks = frame.parks
            self._loaded.set_result(None)
        elif isinstance(frame, guest.LoadError) and not self._loaded.done():
            error, step = truncated_error(frame.error), frame.step if frame.step in guest.STEPS else "start"
            if self.blank is not None:
                self.blank.tap.log(f"{step} failed: {error.type}: {error.message}")
            self._loaded.set_exception(StartFailed(f"{step} failed", error))
        else:
            return False
        return True

    def on_exit(self, reason: str) -> None:
        """The sandbox has ended: a guest that has not loaded yet never will."""
        if not self._loaded.done():
            self._loaded.set_exception(StartFailed(reason, RemoteError("ContainerDied", reason)))

    def _note_step(self, step: guest.LoadStep) -> None:
        """Enter one of the guest's steps in the public timeline, once and no longer than possible."""
        if step.name not in guest.STEPS or step.name in self.timeline:
            self._kill("the guest reported an unknown step")
            return
        longest = (self._clock() - self._born_at) * 1000
        self.timeline[step.name] = round(step.ms if 0 <= step.ms <= longest else longest, 3)
        self._changed()

    def _end_step(self, name: str) -> None:
        """Enter a step in the timeline; the next one begins."""
        now = self._clock()
        self.timeline[name] = round((now - self._step_began_at) * 1000, 3)
        self._step_began_at = now
        self._changed()
