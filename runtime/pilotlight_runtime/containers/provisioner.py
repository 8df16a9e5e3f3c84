"""What a container is made of: the manifest, a sandbox, the version's files, devices."""

from __future__ import annotations

from collections.abc import Mapping

from pilotlight_core.model.messages.call_messages import RemoteError
from pilotlight_core.model.messages.node_messages import Bind, SandboxCeilings, SliceReport
from pilotlight_core.model.networks.network_targets import mark_given
from pilotlight_core.model.spec import Manifest, network_of
from pilotlight_runtime.containers.blanks.blank import Blank
from pilotlight_runtime.containers.blanks.blank_pools import BlankPools
from pilotlight_runtime.containers.blanks.resource_limits import blank_limits, limits_of, over_ceiling
from pilotlight_runtime.containers.files.compile_cache import CompileCache, CompileHandover
from pilotlight_runtime.containers.files.disk_room import NoDiskRoom
from pilotlight_runtime.containers.files.staging import Stager
from pilotlight_runtime.containers.secret_requests import LoadedSecrets, LoadSecretSource
from pilotlight_runtime.devices.device_port import Devices
from pilotlight_runtime.egress.proxy_messages import OpenWay
from pilotlight_runtime.egress.proxy_supervisor import ProxySupervisor
from pilotlight_runtime.environments.environment_builds import EnvironmentBuilds
from pilotlight_runtime.sandbox.sandbox_spec import ResourceLimits


class Provisioner:
    def __init__(
        self,
        stager: Stager,
        pools: BlankPools,
        devices: Devices,
        ceilings: SandboxCeilings,
        ways_out: ProxySupervisor,
        secrets: LoadSecretSource,
        compiles: CompileCache,
        environments: EnvironmentBuilds,
    ) -> None:
        self._stager = stager
        self._compiles = compiles
        self._ways_out = ways_out
        self._secrets = secrets
        self._environments = environments
        self._pools = pools
        self._devices = devices
        self._ceilings = ceilings
        self._unnamed = blank_limits(ceilings)

    def refusal(self, manifest: Manifest) -> RemoteError | None:
        """What this node lacks for a version, which placement should not have sent here; None: nothing."""
        if manifest.base not in self._pools.bases:
            there = ", ".join(self._pools.bases)
            return RemoteError("UnknownBase", f"this node has no base environment {manifest.base!r}; it has {there}")
        why = over_ceiling(manifest.spec, self._ceilings)
        return RemoteError("OverCeiling", f"it asks for {why}") if why else None

    def limits(self, manifest: Manifest | None) -> ResourceLimits:
        """Of the version's containers here; None: of a blank."""
        return limits_of(manifest.spec, self._unnamed) if manifest else self._unnamed

    async def manifest(self, bind: Bind) -> Manifest:
        """Raises: CannotVerify, BadSignature, NoKey, BlobMissing, BlobsDown"""
        return await self._stager.manifest(bind)

    async def blank(self, manifest: Manifest, part: SliceReport) -> Blank:
        """A sandbox on a slice with the function's base environment and limits: a blank, if there is one that can get
        them.

        Raises:
            SandboxError: if it could not be started.
        """
        return await self._pools.take(manifest.base, part, self._devices.access(part.id), self.limits(manifest))

    async def stage(self, bind: Bind, manifest: Manifest, blank: Blank) -> None:
        """Link the version's files into the blank's folders.

        Raises: CannotVerify, NoDiskRoom, BlobMissing, BlobsDown
        """
        lacks: NoDiskRoom | None = None
        try:
            await self._stager.stage(bind, manifest, blank.code, blank.models)
        except NoDiskRoom as error:
            lacks = error
        if lacks is not None:
            # The stager has made what room it could; environments that nobody uses make room too.
            if not await self._environments.free(lacks.lacking):
                raise lacks
            await self._stager.stage(bind, manifest, blank.code, blank.models)
        await self._compiles.lay_out(bind.tenant, bind.version, blank.compiled)

    def handover(self, bind: Bind) -> CompileHandover:
        """Where what a container of the version compiles goes."""
        return self._compiles.begin(bind.tenant, bind.version)

    async def build_packages(self, manifest: Manifest) -> None:
        """Have what the version's requirements were locked to, built here if it is not yet. Raises BuildFailed"""
        if manifest.lock is not None:
            await self._environments.ensure(manifest.tenant, manifest.base, manifest.lock)

    async def stage_packages(self, manifest: Manifest, blank: Blank) -> str:
        """Link those into the blank's folder; its path inside, or "" if there are none. Raises BuildFailed, OSError"""
        if manifest.lock is None or not manifest.lock.packages:
            return ""
        await self._environments.stage(manifest.tenant, manifest.base, manifest.lock, blank.packages)
        return str(blank.packages_inside)

    def open_network(self, bind: Bind, manifest: Manifest, blank: Blank) -> str:
        """Give a container the way out that its manifest names and its tenant may have; the folder of its socket
        inside, or "" if it is given none.

        Raises:
            OSError: there is no room for it.
        """
        targets = tuple(target for target in network_of(manifest.spec) if target in bind.network)
        if not targets:
            return ""
        function = f"{manifest.tenant}:{manifest.app}.{manifest.function}"
        way = OpenWay(container=bind.container, tenant=manifest.tenant, function=function, targets=targets)
        self._ways_out.open(way, blank.network)
        return str(blank.network_inside)

    def network_mark(self, container: str, manifest: Manifest) -> int:
        """What a container is let out to of what its manifest names; 0: nothing."""
        targets = self._ways_out.targets_of(container)
        return mark_given(network_of(manifest.spec), targets) if targets else 0

    def close_network(self, container: str) -> None:
        """End a container's way out, if it has one."""
        self._ways_out.close(container)

    async def secrets(self, bind: Bind, manifest: Manifest) -> LoadedSecrets:
        """The present values of the version's secrets. Raises SecretsRefused"""
        return await self._secrets.fetch(bind, manifest.spec)

    def env(self, part: SliceReport) -> Mapping[str, str]:
        return self._devices.access(part.id).env

    def container_changed(self) -> None:
        """Let the pools make blanks: a container is ready or gone."""
        self._pools.wake()
