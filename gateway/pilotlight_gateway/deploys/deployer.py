"""Carries out deploys, in an order of writes that survives a crash."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec
from msgspec import UNSET

from pilotlight_core.bus import retry_conflicts
from pilotlight_core.host.blobs import BlobMissing, BlobStore
from pilotlight_core.host.signing import BadSignature
from pilotlight_core.host.steady_clock import run_time
from pilotlight_core.model.api.call_api import DeployRequest, DeployResponse
from pilotlight_core.model.api.curve_api import TrialRequest
from pilotlight_core.model.errors import BadInput, Conflict, NotFound, RemovesFunctions
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.packages.package_locks import PackageLock
from pilotlight_core.model.spec import AppRecord, FunctionSpec, Manifest, VersionRecord
from pilotlight_core.model.versions.artifacts import parts_of
from pilotlight_core.model.versions.manifest_codec import version_id
from pilotlight_gateway.bodies.artifact_rules import check_part_sizes, repeated_sizes
from pilotlight_gateway.bodies.bundles import check_sizes
from pilotlight_gateway.deploys.app_records import (
    VERSIONS_KEPT,
    deployed,
    next_record,
    own_app,
    registered,
    registered_by,
    removed,
    renewed_record,
    stopped_record,
)
from pilotlight_gateway.deploys.blob_usage import BlobUsage, check_blob_bytes
from pilotlight_gateway.deploys.companions import with_companions, with_versions
from pilotlight_gateway.deploys.deploy_limits import check_holdings
from pilotlight_gateway.deploys.deploy_plan import (
    Build,
    manifests_of,
    secret_warnings,
    signatures_of,
    signed_blob,
    version_record,
    without_floors,
)
from pilotlight_gateway.deploys.deploy_quota import check_deploy_quota, check_record_bytes
from pilotlight_gateway.deploys.ended_runs import delete_ended_runs
from pilotlight_gateway.deploys.engines.engine_plans import arithmetic, planned_engines, with_arithmetic
from pilotlight_gateway.deploys.package_locker import PackageLocker
from pilotlight_gateway.deploys.present_files import files_in_service, lock_in_service, staying_files
from pilotlight_gateway.deploys.rules.fallback_rules import check_fallbacks
from pilotlight_gateway.deploys.rules.network_policy import check_network
from pilotlight_gateway.deploys.rules.rollout_rules import check_no_traffic, check_tried_before, supersede_rollout
from pilotlight_gateway.deploys.rules.schedule_bounds import check_schedule_bounds
from pilotlight_gateway.deploys.served_models import ServedModels
from pilotlight_gateway.deploys.weights_pins import affinity_warnings, pinned_weights, pushed_signatures
from pilotlight_gateway.deploys.weights_pushes import PushedWeights
from pilotlight_gateway.fleet.curve_trials import pinned
from pilotlight_gateway.fleet.fleet_inventory import FleetPlacements
from pilotlight_gateway.secrets.secret_service import check_secrets_set
from pilotlight_gateway.secrets.secret_store import SecretStore
from pilotlight_gateway.supply.signing_keys import ManifestSigner
from pilotlight_gateway.supply.supply_desk import SupplyDesk, VersionReview
from pilotlight_gateway.tenancy.auth import Principal
from pilotlight_gateway.tenancy.function_shares import check_still_open
from pilotlight_gateway.tenancy.name_hints import known_app
from pilotlight_gateway.tenancy.registry_port import RegistryPort


@dataclass(frozen=True, kw_only=True)
class Deployer:
    """Carries out deploys, stops and trials."""

    registry: RegistryPort
    blobs: BlobStore
    usage: BlobUsage
    supply: SupplyDesk
    signer: ManifestSigner
    secrets: SecretStore
    locker: PackageLocker
    placements: FleetPlacements = field(default_factory=FleetPlacements)

    @property
    def weights(self) -> PushedWeights:
        """What tenants have pushed, which functions may name."""
        return PushedWeights(registry=self.registry, blobs=self.blobs, usage=self.usage, trust=self.supply.trust)

    @property
    def models(self) -> ServedModels:
        """The names under which functions are served."""
        return ServedModels(self.registry)

    async def deploy(
        self, principal: Principal, app: str, request: DeployRequest, lock: PackageLock | None = None
    ) -> DeployResponse:
        """Deploy a whole app, or return the digests of contents to upload first. `request` is checked (`read_deploy`),
        `lock` is that of its requirements.

        Raises:
            BadInput: names the wrong field, the limit that is reached, a secret or weights that there are not, or a
                function that no node could ever hold.
            PolicyRefused: names the rule and the component.
            RemovesFunctions: it would, and `prune` is not set.
            QuotaExceeded: names the limit of the tenant.
            Conflict: other deploys keep changing the app.
        """
        # So that they are no part of what the tenant may have.
        await delete_ended_runs(self.registry, run_time(), principal.tenant)
        present = await self.registry.app(principal.tenant, app)
        _check_removed(present, request)
        check_no_traffic(request)
        if request.ends_in_s is not None:
            request = without_floors(request)
        specs = [function.spec for function in request.functions]
        check_holdings(self.registry, principal.tenant, app, specs, time.time())
        check_network(self.registry, principal.tenant, specs)
        check_fallbacks(specs)
        if request.ends_in_s is None:  # a run has no ticks
            check_schedule_bounds(self.registry, principal.tenant, app, specs)
        await check_secrets_set(self.secrets, principal.tenant, specs)
        pins = await pinned_weights(self.weights, principal.tenant, request)
        request, plans = await planned_engines(self.blobs, principal.tenant, request, pins)
        specs = [function.spec for function in request.functions]
        request = with_companions(request)
        pushed = await pushed_signatures(self.weights, principal.tenant, pins)
        signatures = signatures_of(request, pins, pushed)
        documented = self.supply.has_policy(principal.tenant)
        manifests = manifests_of(principal.tenant, app, request, pins, lock, signatures, documented=documented)
        needs = {manifest.function: manifest.needs for manifest in manifests}
        try:
            unheld = await self.placements.check([one.spec for one in manifests], request.base, needs)
        except BadInput as error:
            raise with_arithmetic(error, plans) from None
        at = time.time()
        reviews = await self.supply.review(manifests, signatures, at, with_content=False)
        warnings = (
            *unheld,
            *self.supply.warnings(reviews),
            *secret_warnings(specs),
            *affinity_warnings(self.registry, principal.tenant, specs),
        )
        missing = await self._missing(principal.tenant, request, present)
        if missing:
            return DeployResponse(app=app, revision=present.revision if present else 0, missing=missing)
        # Again, now that what is deployed can be looked into.
        reviews = await self.supply.review(manifests, signatures, at, with_content=True)
        builds: list[Build] = []
        for manifest in manifests:  # a class behind its companions, whose versions it names
            known = {build.manifest.function: build.version_id for build in builds}
            builds.append(await self._build(with_versions(manifest, known), reviews[manifest.function]))
        attempt = partial(self._try_deploy, principal, app, request, builds)
        done = await retry_conflicts(attempt, conflict=Conflict)
        return msgspec.structs.replace(done, warnings=warnings, notes=arithmetic(plans))

    async def lock(self, principal: Principal, app: str, request: DeployRequest) -> PackageLock:
        """What the requirements of a deploy come to; as before, if it asks for the same over the same base environment.

        Raises:
            BadInput: the resolver's words, or no node has an index. Unavailable: no node answers now.
        """
        tenant = principal.tenant
        present = await self.registry.app(tenant, app)
        asked = tuple(sorted(request.requirements))
        known = await lock_in_service(self.registry, self.blobs, present, request.base, asked)
        return await self.locker.lock(tenant, request.base, asked, known)

    async def _missing(self, tenant: str, request: DeployRequest, present: AppRecord | None) -> tuple[str, ...]:
        """The digests to upload first. Raises BadInput, and QuotaExceeded if they would not fit."""
        sizes = {entry.sha256: entry.size for entry in request.files}
        sizes |= {part.sha256: part.size for part in parts_of(request.artifacts)}
        stored = await self.blobs.stored(tenant, sizes)
        found = {digest: info.size for digest, info in stored.items()}
        check_sizes(request.files, found)
        check_part_sizes(request, found)
        in_service = await files_in_service(self.registry, self.blobs, present)
        staying = await staying_files(self.blobs, tenant, stored, in_service, time.time())
        missing = tuple(digest for digest in sorted(sizes) if digest not in staying)
        allowed = self._limits(tenant).blob_bytes
        # A part takes room on nodes as often as it is named.
        new = [sizes[digest] for digest in missing if digest not in stored] + repeated_sizes(
            parts_of(request.artifacts)
        )
        if new and allowed is not None:
            check_blob_bytes(tenant, allowed, await self.usage.of(tenant), new)
        return missing

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

    async def renew(self, principal: Principal, app: str, ends_in_s: float) -> AppRecord:
        """Let a run end later.

        Raises:
            NotFound: there is no such app, or its time is over.
            Conflict: it is no run, or other deploys keep changing it.
        """

        async def attempt() -> AppRecord:
            record = await known_app(self.registry, principal.tenant, app)
            if record.has_ended(run_time()):
                raise NotFound(f"The run {app} has ended.")
            renewed = renewed_record(record, time.time() + ends_in_s)
            await self.registry.deploy(renewed, record.revision)
            return renewed

        return await retry_conflicts(attempt, conflict=Conflict)

    async def delete(self, principal: Principal, app: str) -> AppRecord:
        """Delete an app with its versions. What still runs of it is ended as after a stop.

        Raises:
            NotFound: there is no such app.
            Conflict: other deploys keep changing it.
        """

        async def attempt() -> AppRecord:
            record = await known_app(self.registry, principal.tenant, app)
            await self.registry.delete_app(record)
            return record

        return await retry_conflicts(attempt, conflict=Conflict)

    async def trial(self, version: VersionRecord, asked: TrialRequest) -> VersionRecord:
        """Store a copy of a version, pinned to one kind of slice; equal requests give the same version.

        Raises:
            NotFound: the version's manifest is deleted. Conflict: no key that counts has signed it.
            QuotaExceeded: the tenant's records are full.
        """
        return await self._copy(
            version, lambda spec: msgspec.structs.replace(pinned(version.spec, asked), rehearsal=spec.rehearsal)
        )

    async def twin(self, version: VersionRecord) -> VersionRecord:
        """Store a copy of a version, with which its successor is compared; it is shown as the version itself.

        Raises:
            As `trial`.
        """
        return await self._copy(
            version,
            lambda spec: msgspec.structs.replace(spec, twin=version.id, min_containers=0, schedules=UNSET, warm=UNSET),
        )

    async def _copy(self, version: VersionRecord, changed: Callable[[FunctionSpec], FunctionSpec]) -> VersionRecord:
        """Store a version of the same content with another specification, which no app's record names."""
        try:
            # What is signed anew was signed before: else whoever writes records would have what they like signed.
            manifest = await self.signer.verify(await self.supply.signed_manifest(version))
        except BlobMissing as error:
            raise NotFound(f"The manifest of {version.ref} is deleted: {error.detail}") from None
        except BadSignature as error:
            raise Conflict(f"{version.ref} cannot be copied: {error.detail}") from None
        review = await self.supply.judged(version, time.time())
        build = await self._build(msgspec.structs.replace(manifest, spec=changed(manifest.spec)), review)
        record = msgspec.structs.replace(version_record(build, None), number=version.number)
        if self.registry.version(record.id) is None:
            tenant, used = version.tenant, self.registry.bytes_of(version.tenant)
            check_record_bytes(self._limits(tenant), [record], used, tenant=tenant)
        await self.registry.put_version(record)
        return record

    async def _build(self, manifest: Manifest, review: VersionReview) -> Build:
        """One at a time, since each manifest may be megabytes. Raises QuotaExceeded."""
        signed = await self.signer.sign(manifest)
        version, digest, data = await asyncio.to_thread(lambda: (version_id(signed.manifest), *signed_blob(signed)))
        known = self.registry.version(version)
        documents = await self.supply.documents(
            manifest, signed, review, self.signer, review.facts.at if known is None else known.created_at
        )
        await self._store(manifest.tenant, ((digest, data), *documents.blobs))
        return Build(
            manifest=manifest, version_id=version, signed_sha256=digest, evidence=documents.info, at=review.facts.at
        )

    async def _store(self, tenant: str, contents: Sequence[tuple[str, bytes]]) -> None:
        """Raises QuotaExceeded."""
        stored = await self.blobs.stored(tenant, {digest for digest, _ in contents})
        new = [len(data) for digest, data in contents if digest not in stored]
        allowed = self._limits(tenant).blob_bytes
        if new and allowed is not None:
            check_blob_bytes(tenant, allowed, await self.usage.of(tenant), new)
        # Also what is there: that renews it.
        await asyncio.gather(*(self.blobs.put(tenant, digest, data) for digest, data in dict(contents).items()))
        self.usage.add(tenant, sum(new))

    async def _try_deploy(
        self, principal: Principal, app: str, request: DeployRequest, builds: list[Build]
    ) -> DeployResponse:
        at, tenant = time.time(), principal.tenant
        before, limits = await self.registry.app(tenant, app), self._limits(tenant)
        _check_removed(before, request)
        functions = {build.manifest.function: build.version_id for build in builds}
        rollouts = await self.registry.rollout(tenant, app)
        check_tried_before(rollouts, before, functions, request)
        after = next_record(
            before,
            tenant=tenant,
            app=app,
            functions=functions,
            by=principal.key_id,
            at=at,
            message=request.message,
            keep=limits.versions or VERSIONS_KEPT,
            ends_at=at + request.ends_in_s if request.ends_in_s is not None else 0.0,
            traffic=not request.no_traffic,
            named=rollouts.kept_versions() if rollouts is not None else (),
        )
        versions = [version_record(build, before) for build in builds]
        if after is not None:
            new = [version for version in versions if self.registry.version(version.id) is None]
            check_still_open(self.registry, after)
            check_deploy_quota(limits, after, self.registry.iter_apps(tenant), new, self.registry.bytes_of(tenant))
        specs = {build.manifest.function: build.manifest.spec for build in builds}
        serves = request.ends_in_s is None and not request.no_traffic  # a run is nobody's model
        if serves:
            await self.models.claim(tenant, app, specs, at)
        kept = set() if before is None else {id_ for ids in before.versions.values() for id_ in ids}
        for version in versions:
            present = self.registry.version(version.id)
            # Another signature: this gateway's key is not the one of before, which may soon count no more.
            resigned = present is not None and (
                present.manifest_sha256 != version.manifest_sha256 or present.evidence != version.evidence
            )
            if resigned or (after is not None and (version.id not in kept or present is None)):
                await self.registry.put_version(version)
        if after is not None:
            await self.registry.deploy(after, before.revision if before else 0)
            if serves:
                await self.models.release(after, specs, at)
        if rollouts is not None and not request.no_traffic:
            await supersede_rollout(self.registry, rollouts, functions, at, retry=request.retry)
        record = after or own_app(before, app)
        gone = removed(before, record.functions)
        if request.no_traffic:
            revision = registered_by(record, functions) or record.revision
            shown = registered(record, before, functions)
        else:
            revision, shown = record.revision, deployed(record, before)
        return DeployResponse(app=app, revision=revision, functions=shown, removed=gone)

    def _limits(self, tenant: str) -> Limits:
        return self.registry.limits(tenant, "").tenant


def _check_removed(before: AppRecord | None, request: DeployRequest) -> None:
    gone = removed(before, (function.spec.name for function in request.functions)) if not request.no_traffic else ()
    if gone and not request.prune and before is not None:
        raise RemovesFunctions(
            f"{before.app} has functions that are not in this deploy, which would be removed: {', '.join(gone)}.",
            removes=list(gone),
        )
