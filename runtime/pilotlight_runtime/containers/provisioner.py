"""What a container is made of: the manifest, a sandbox, the version's files, devices."""

from __future__ import annotations

from collections.abc import Mapping

from pilotlight_core.model.messages.agent_messages import Bind, SliceKind, SliceReport
from pilotlight_core.model.spec import Manifest
from pilotlight_runtime.containers.blank import Blank
from pilotlight_runtime.containers.blank_pool import BlankPool
from pilotlight_runtime.containers.resource_limits import limits_of
from pilotlight_runtime.containers.staging import Stager
from pilotlight_runtime.devices.device_port import Devices


class Provisioner:
    def __init__(self, stager: Stager, pool: BlankPool, devices: Devices) -> None:
        self._stager = stager
        self._pool = pool
        self._devices = devices

    @property
    def base(self) -> str:
        """The name of this node's base environment."""
        return self._pool.starter.base.name

    async def manifest(self, bind: Bind) -> Manifest:
        """Raises: CannotVerify, BadSignature, NoKey, BlobMissing, BlobsDown"""
        return await self._stager.manifest(bind)

    async def blank(self, manifest: Manifest, part: SliceReport) -> Blank:
        """A sandbox on a slice with the function's limits; on a CPU slot a ready blank, if there is one.

        Raises:
            SandboxError: if it could not be started.
        """
        limits = limits_of(manifest.spec)
        if part.kind is SliceKind.CPU:
            return await self._pool.take(limits)
        return await self._pool.starter.start(limits, self._devices.access(part.id))

    async def stage(self, bind: Bind, manifest: Manifest, blank: Blank) -> None:
        """Link the version's files into the blank's code folder; raises CannotVerify, BlobMissing, BlobsDown."""
        await self._stager.stage(bind, manifest, blank.code)

    def env(self, part: SliceReport) -> Mapping[str, str]:
        return self._devices.access(part.id).env

    def container_changed(self) -> None:
        """Let the pool make a blank: a container is ready or gone."""
        self._pool.wake()
