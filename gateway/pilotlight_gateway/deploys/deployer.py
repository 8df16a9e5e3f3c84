"""Carries out deploys, in an order of writes that survives a crash."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import msgspec

from pilotlight_core.bus import retry_conflicts
from pilotlight_core.host.blobs import BlobStore
from pilotlight_core.model.api.call_api import DeployRequest, DeployResponse
from pilotlight_core.model.api.curve_api import TrialRequest
from pilotlight_core.model.errors import Conflict
from pilotlight_core.model.spec import AppRecord, Manifest, SignedManifest, VersionRecord
from pilotlight_gateway.deploys.bundles import check_sizes
from pilotlight_gateway.deploys.deploy_plan import (
    Build,
    check_deploy,
    deployed,
    manifests_of,
    next_record,
    own_app,
    signed_blob,
    stopped_record,
    version_record,
)
from pilotlight_gateway.fleet.curve_trials import pinned
from pilotlight_gateway.fleet.fleet_inventory import FleetPlacements
from pilotlight_gateway.tenancy.auth import Principal
from pilotlight_gateway.tenancy.name_hints import known_app
from pilotlight_gateway.tenancy.registry_port import RegistryPort


class ManifestSigner(Protocol):
    """Signs the manifests that the platform has accepted."""

    def sign(self, manifest: Manifest) -> SignedManifest: ...


@dataclass(frozen=True, kw_only=True)
class Deployer:
    """Carries out deploys, stops and trials."""

    registry: RegistryPort
    blobs: BlobStore
    signer: ManifestSigner
    placements: FleetPlacements = field(default_factory=FleetPlacements)

    async def deploy(self, principal: Principal, app: str, request: DeployRequest) -> DeployResponse:
        """Deploy a whole app, or return the digests of contents to upload first.

        Raises:
            BadInput: names the wrong field, or a function that no node could ever hold.
            Conflict: other deploys keep changing the app.
        """
        await asyncio.to_thread(check_deploy, app, request)  # thousands of schemas take time
        warnings = await self.placements.check(function.spec for function in request.functions)
        digests = {entry.sha256 for entry in request.files}
        sizes = await self.blobs.sizes(principal.tenant, digests)
        check_sizes(request.files, sizes)
        missing = digests - sizes.keys()
        if missing:
            present = await self.registry.app(principal.tenant, app)
            return DeployResponse(app=app, revision=present.revision if present else 0, missing=tuple(sorted(missing)))
        builds = [await self._build(manifest) for manifest in manifests_of(principal.tenant, app, request)]
        attempt = partial(self._try_deploy, principal, app, request, builds)
        done = await retry_conflicts(attempt, conflict=Conflict)
        return msgspec.structs.replace(done, warnings=warnings)

    async def stop(self, principal: Principal, app: str) -> AppRecord:
        """Take an app out of service. Its versions stay; the next deploy starts it again.

        Raises:
            NotFound: there is no such app.
            Conflict: other deploys keep changing it.
        """

        async def attempt() -> AppRecord:
            record = await known_app(self.registry, principal.tenant, app)
            stopped = stopped_record(record, by=principal.key_id, at=time.time())
            if stopped is not None:
                await self.registry.deploy(stopped, record.revision)
            return stopped or record

        return await retry_conflicts(attempt, conflict=Conflict)

    async def trial(self, version: VersionRecord, asked: TrialRequest) -> VersionRecord:
        """Store a copy of a version, pinned to one kind of slice; equal requests give the same version.

        Raises:
            NotFound: the version's manifest is deleted.
        """
        blob = await self.blobs.read(version.tenant, version.manifest_sha256)
        signed = msgspec.msgpack.decode(blob, type=SignedManifest)
        manifest = msgspec.json.decode(signed.manifest, type=Manifest)
        build = await self._build(msgspec.structs.replace(manifest, spec=pinned(version.spec, asked)))
        record = msgspec.structs.replace(version_record(build, None, time.time()), number=version.number)
        await self.registry.put_version(record)
        return record

    async def _build(self, manifest: Manifest) -> Build:
        """One at a time, since each manifest may be a megabyte."""

        def sign() -> tuple[str, str, bytes]:
            return manifest.version_id, *signed_blob(self.signer.sign(manifest))

        version_id, digest, data = await asyncio.to_thread(sign)
        await self.blobs.put(manifest.tenant, digest, data)
        return Build(manifest=manifest, version_id=version_id, signed_sha256=digest)

    async def _try_deploy(
        self, principal: Principal, app: str, request: DeployRequest, builds: list[Build]
    ) -> DeployResponse:
        at = time.time()
        before = await self.registry.app(principal.tenant, app)
        after = next_record(
            before,
            tenant=principal.tenant,
            app=app,
            functions={build.manifest.function: build.version_id for build in builds},
            by=principal.key_id,
            at=at,
            message=request.message,
        )
        if after is not None:
            for build in builds:
                await self.registry.put_version(version_record(build, before, at))
            await self.registry.deploy(after, before.revision if before else 0)
        record = after or own_app(before, app)
        return DeployResponse(app=app, revision=record.revision, functions=deployed(record, before))
