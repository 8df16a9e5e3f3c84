"""Deploys done: blobs, signatures and the registry's records, in the order in which a crash leaves nothing half."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

from pilotlight_core.host.blobs import BlobStore
from pilotlight_core.model.api import DeployRequest, DeployResponse
from pilotlight_core.model.errors import Conflict
from pilotlight_core.model.spec import AppRecord, Manifest, SignedManifest
from pilotlight_gateway.auth import Principal
from pilotlight_gateway.deploys import (
    check_deploy,
    deployed,
    manifests_of,
    next_record,
    number_of,
    own_app,
    signed_blob,
    stopped_record,
    version_record,
)
from pilotlight_gateway.registry_port import RegistryPort

ATTEMPTS = 8
"""Deploys of one app that get in each other's way are tried this often; each time at least one of them succeeds."""


class ManifestSigner(Protocol):
    """Vouches for what the platform accepted."""

    def sign(self, manifest: Manifest) -> SignedManifest: ...


@dataclass(frozen=True, kw_only=True)
class Deployer:
    """Carries out deploys and stops."""

    registry: RegistryPort
    blobs: BlobStore
    signer: ManifestSigner

    async def deploy(self, principal: Principal, app: str, request: DeployRequest) -> DeployResponse:
        """Deploy all of an app, or answer with the digests that must be uploaded first.

        Raises:
            BadInput: naming the field that is wrong.
            Conflict: if others keep changing the app.
        """
        check_deploy(app, request)
        digests = {entry.sha256 for entry in request.files}
        missing = digests - await self.blobs.has(principal.tenant, digests)
        if missing:
            present = await self.registry.app(principal.tenant, app)
            return DeployResponse(app=app, revision=present.revision if present else 0, missing=tuple(sorted(missing)))
        manifests = manifests_of(principal.tenant, app, request)
        stored = {name: await self._store_signed(manifest) for name, manifest in manifests.items()}
        for attempt in range(ATTEMPTS):
            try:
                return await self._try_deploy(principal, app, request, manifests, stored)
            except Conflict:
                if attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError

    async def stop(self, principal: Principal, app: str) -> AppRecord:
        """Take an app out of service; its versions stay, and a deploy starts it again.

        Raises:
            NotFound: if there is no such app.
            Conflict: if others keep changing it.
        """
        for attempt in range(ATTEMPTS):
            record = own_app(await self.registry.app(principal.tenant, app), app)
            stopped = stopped_record(record, by=principal.key_id, at=time.time())
            if stopped is None:
                return record
            try:
                await self.registry.deploy(stopped, record.revision)
            except Conflict:
                if attempt == ATTEMPTS - 1:
                    raise
            else:
                return stopped
        raise AssertionError

    async def _store_signed(self, manifest: Manifest) -> str:
        digest, data = signed_blob(self.signer.sign(manifest))
        await self.blobs.put(manifest.tenant, digest, data)
        return digest

    async def _try_deploy(
        self,
        principal: Principal,
        app: str,
        request: DeployRequest,
        manifests: dict[str, Manifest],
        stored: dict[str, str],
    ) -> DeployResponse:
        at = time.time()
        before = await self.registry.app(principal.tenant, app)
        ids = {name: manifest.version_id for name, manifest in manifests.items()}
        after = next_record(
            before,
            tenant=principal.tenant,
            app=app,
            functions=ids,
            by=principal.key_id,
            at=at,
            message=request.message,
        )
        if after is not None:
            for name, manifest in manifests.items():
                number = number_of(before, name, ids[name])
                await self.registry.put_version(version_record(manifest, stored[name], number, at))
            await self.registry.deploy(after, before.revision if before else 0)
        record = after or own_app(before, app)
        return DeployResponse(app=app, revision=record.revision, functions=deployed(record, before))
