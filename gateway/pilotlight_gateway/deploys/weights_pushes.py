"""Weights of tenants: pushed, listed, shown and removed.

A push is asked for twice, as a deploy is: first it answers which parts are missing, then, once they are uploaded, it
stores the listing and puts its digest into the name's record. A part that is stored is never sent again, so a push that
was broken off goes on where it was. What is removed stays a day in the record, out of sight: a deploy that has named it
a moment before finds its parts, and the search for blobs that nobody needs leaves them until then.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from pilotlight_core.host.blobs import BlobMissing, BlobStore
from pilotlight_core.host.supply.trust_keys import MemoryTrust, TrustReader
from pilotlight_core.model.api.weights_api import (
    PushResponse,
    RevisionInfo,
    SignatureInfo,
    WeightsDetail,
    WeightsFile,
    WeightsInfo,
)
from pilotlight_core.model.errors import BadInput, Conflict, NotFound, QuotaExceeded
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.spec import ArtifactEntry
from pilotlight_core.model.suggestions import did_you_mean, nearest
from pilotlight_core.model.versions.artifacts import bytes_of, files_of
from pilotlight_core.model.versions.pushed_weights import (
    MOST_REVISIONS,
    MOST_WEIGHTS,
    WeightsRecord,
    WeightsRef,
    WeightsRevision,
    listing_of,
    parts_in,
    weights_entry,
)
from pilotlight_gateway.bodies.artifact_rules import repeated_sizes
from pilotlight_gateway.deploys.blob_usage import BlobUsage, check_blob_bytes
from pilotlight_gateway.deploys.present_files import staying_files
from pilotlight_gateway.deploys.rules.weights_rules import WeightsPush
from pilotlight_gateway.supply.weights_signatures import check_pushed, pushed_signature, signature_info
from pilotlight_gateway.tenancy.auth import Principal
from pilotlight_gateway.tenancy.quotas import check_quota
from pilotlight_gateway.tenancy.registry_port import RegistryPort

ROOM = "remove weights, or delete an app"


class _Signature(NamedTuple):
    """One that was verified; empty: there is none."""

    digest: str = ""
    hint: str = ""


@dataclass(frozen=True, kw_only=True)
class PushedWeights:
    """The weights of all tenants. Methods raise BlobsDown and BusError."""

    registry: RegistryPort
    blobs: BlobStore
    usage: BlobUsage
    trust: TrustReader = field(default_factory=MemoryTrust)
    """Whose signatures over weights count."""
    wall: Callable[[], float] = time.time

    async def push(self, principal: Principal, asked: WeightsPush) -> PushResponse:
        """Store weights under a name, or say which of their parts to upload first. `asked` is checked (`read_push`).

        Raises:
            BadInput: a part has another size than is stored, or the signature does not hold. QuotaExceeded: names the
                limit. Conflict.
        """
        pushed, tenant = asked.entry, principal.tenant
        name = check_name(pushed.name, "name")
        sign = await self._signature(tenant, asked)
        listing = await asyncio.to_thread(listing_of, pushed.parts)
        digest, size = hashlib.sha256(listing).hexdigest(), bytes_of((pushed,))
        record = await self.registry.weights(tenant, name)
        newest = record.newest if record is not None else None
        is_newest = newest is not None and newest.digest == digest
        more: list[int] = []
        if not is_newest:
            self._check_room(tenant, record, digest)
            # A part takes room on nodes as often as it is named.
            more = [len(listing), *repeated_sizes(pushed.parts)]
        if sign.digest:
            more.append(len(asked.signature))
        if missing := await self._missing(tenant, pushed, await self._needed(tenant, newest), more):
            return PushResponse(name=name, digest=digest, size=size, missing=missing)
        await self.blobs.put(tenant, digest, listing)  # also if it should be there: the store may have lost it
        if sign.digest:
            await self.blobs.put(tenant, sign.digest, asked.signature)
        if newest is not None and is_newest and sign.digest in ("", newest.signature):
            signed = await self._signed(tenant, newest)
            return PushResponse(name=name, digest=digest, size=size, unchanged=True, signed=signed)
        self.usage.add(tenant, len(asked.signature) + (0 if is_newest else len(listing)))
        revision = WeightsRevision(
            digest=digest,
            files=sum(1 for _ in files_of(pushed)),
            parts=len(pushed.parts),
            size=size,
            pushed_at=self.wall(),
            pushed_by=principal.key_id,
            pickles=asked.pickles,
            signature=sign.digest,
            signed_by=sign.hint,
        )
        made = revision

        def changed(present: WeightsRecord | None) -> WeightsRecord:
            nonlocal made
            before = present or WeightsRecord(tenant=tenant, name=name)
            made = _signed_as_before(revision, before)
            kept = _others(before, digest, revision.pushed_at)
            _check_revisions(kept)
            return replace(before, revisions=(*kept, made))

        await self.registry.change_weights(tenant, name, changed)
        signed = await self._signed(tenant, made)
        return PushResponse(name=name, digest=digest, size=size, unchanged=is_newest, signed=signed)

    async def signature(self, tenant: str, name: str, digest: str) -> bytes | None:
        """What the tenant has signed of weights; None: it has not.

        Raises:
            BadInput: the store has lost it.
        """
        return await pushed_signature(self.blobs, await self.registry.weights(tenant, name), digest)

    async def _signature(self, tenant: str, asked: WeightsPush) -> _Signature:
        """Raises BadInput: it does not hold."""
        if not asked.signature:
            return _Signature()
        key = await check_pushed(self.trust, tenant, asked.entry, asked.signature, self.wall())
        return _Signature(hashlib.sha256(asked.signature).hexdigest(), key.hint)

    async def _signed(self, tenant: str, revision: WeightsRevision) -> SignatureInfo | None:
        trust = await self.trust.read(tenant) if revision.signed_by else None
        return signature_info(revision.signed_by, trust, self.wall())

    async def _missing(
        self, tenant: str, pushed: ArtifactEntry, needed: frozenset[str], more: list[int]
    ) -> tuple[str, ...]:
        """`more`: bytes that must fit beside those which are missing."""
        sizes = {part.sha256: part.size for part in pushed.parts}
        stored = await self.blobs.stored(tenant, sizes)
        for part in pushed.parts:
            if part.sha256 in stored and stored[part.sha256].size != part.size:
                there = stored[part.sha256].size
                raise BadInput(f"parts: {part.path!r} has {there} bytes there, not {part.size}.", field="parts")
        staying = await staying_files(self.blobs, tenant, stored, needed, self.wall())
        missing = tuple(digest for digest in sorted(sizes) if digest not in staying)
        allowed = self.registry.limits(tenant, "").tenant.blob_bytes
        new = [sizes[digest] for digest in missing if digest not in stored]
        if allowed is not None and (new or more):
            check_blob_bytes(tenant, allowed, await self.usage.of(tenant), [*new, *more])
        return missing

    def _check_room(self, tenant: str, record: WeightsRecord | None, digest: str) -> None:
        """Refuse another record, or a longer one, beyond what a tenant may have. Raises QuotaExceeded"""
        if record is None or not record.present:
            others = list(self.registry.iter_weights(tenant))
            if sum(1 for one in others if one.present) >= MOST_WEIGHTS:
                raise QuotaExceeded(f"{tenant} has weights of {MOST_WEIGHTS} names, which is the most. Remove some.")
            if record is None and len(others) >= 2 * MOST_WEIGHTS:
                raise QuotaExceeded(
                    f"{tenant} has weights of {len(others)} names, with those that were removed within a day, which is "
                    "the most: use one of these names, or wait a day."
                )
        if record is not None:
            _check_revisions(_others(record, digest, self.wall()))
        allowed, used = self.registry.limits(tenant, "").tenant.record_bytes, self.registry.bytes_of(tenant)
        check_quota(tenant, "record_bytes", allowed, used, "bytes of records", ROOM)

    async def listed(self, tenant: str) -> list[WeightsInfo]:
        """All of a tenant's, by name."""
        records = sorted(self.registry.iter_weights(tenant), key=lambda record: record.name)
        users, trust, at = self._users(tenant), await self.trust.read(tenant), self.wall()
        return [
            WeightsInfo(
                name=record.name,
                revisions=[_info(one, users, signature_info(one.signed_by, trust, at)) for one in record.present],
            )
            for record in records
            if record.present
        ]

    async def shown(self, tenant: str, ref: WeightsRef) -> WeightsDetail:
        """One of a tenant's, with its files.

        Raises:
            NotFound: there is none. BadInput: a shortened digest is that of several.
        """
        revision = await self.find(tenant, ref)
        entry = weights_entry(ref.name, revision.digest, await self._listing(tenant, revision))
        files = [
            WeightsFile(path=parts[0].path, size=sum(part.size for part in parts), parts=len(parts))
            for parts in files_of(entry)
        ]
        shown = _info(revision, self._users(tenant), await self._signed(tenant, revision))
        return WeightsDetail(name=ref.name, revision=shown, contents=files)

    async def find(self, tenant: str, ref: WeightsRef) -> WeightsRevision:
        """What a ref names, as the bus has it.

        Raises:
            NotFound: there is none. BadInput: a shortened digest is that of several.
        """
        record = await self.registry.weights(tenant, ref.name)
        if record is None or record.newest is None:
            known = [one.name for one in self.registry.iter_weights(tenant) if one.present]
            hint = did_you_mean(nearest(ref.name, known))
            how = f"push them with 'pilotlight weights push {ref.name} FOLDER'"
            raise NotFound(f"There are no weights {ref.name}: {how}.{hint}")
        found = [one for one in record.present if one.digest.startswith(ref.digest)] if ref.digest else [record.newest]
        if not found:
            raise NotFound(f"There are no weights {ref}; the newest of that name are {record.newest.digest[:12]}.")
        if len(found) > 1:
            raise BadInput(f"{ref} may be {' or '.join(one.digest[:16] for one in found)}: say more of the digest.")
        return found[0]

    async def entry(self, tenant: str, ref: WeightsRef) -> ArtifactEntry:
        """What a ref names, as an artifact of a version, pinned.

        Raises:
            NotFound: there is none. BadInput: a shortened digest is that of several.
        """
        revision = await self.find(tenant, ref)
        return weights_entry(ref.name, revision.digest, await self._listing(tenant, revision))

    async def remove(self, tenant: str, ref: WeightsRef) -> list[str]:
        """Remove what a ref names, or all of a name if it has no digest; their digests.

        Raises:
            NotFound: there is none. Conflict: functions in service use it.
        """
        await self.find(tenant, ref)  # refused by what was meant
        at, users = self.wall(), self._users(tenant)
        gone: list[str] = []

        def changed(present: WeightsRecord | None) -> WeightsRecord | None:
            nonlocal gone
            if present is None:
                return None
            gone = [one.digest for one in present.present if one.digest.startswith(ref.digest)]
            if used := sorted({user for digest in gone for user in users.get(digest, ())}):
                raise Conflict(
                    f"{ref} is used by {', '.join(used)}: deploy without it, or stop the app, and remove it then."
                )
            marked = tuple(replace(one, removed_at=at) if one.digest in gone else one for one in present.kept_at(at))
            return replace(present, revisions=marked)

        await self.registry.change_weights(tenant, ref.name, changed)
        return gone

    def _users(self, tenant: str) -> dict[str, list[str]]:
        """By digest, `app.function` of those in service that use it."""
        found: dict[str, list[str]] = {}
        for function, digest in _uses(self.registry, tenant, self.wall()):
            found.setdefault(digest, []).append(function)
        return found

    async def _needed(self, tenant: str, newest: WeightsRevision | None) -> frozenset[str]:
        """The parts that stay whatever is pushed now, as far as that is known."""
        if newest is None:
            return frozenset()
        try:
            return frozenset(part.sha256 for part in parts_in(await self._listing(tenant, newest)))
        except NotFound:  # the store has lost it, which must not keep anybody from pushing anew
            return frozenset()

    async def _listing(self, tenant: str, revision: WeightsRevision) -> bytes:
        """Raises NotFound if the store has lost it."""
        try:
            data = await self.blobs.read(tenant, revision.digest)
            if hashlib.sha256(data).hexdigest() == revision.digest:
                return data
        except BlobMissing:
            pass
        raise NotFound(
            f"The listing of the weights {revision.digest[:12]} is not in the blob store as it was pushed: push anew."
        )


def _others(record: WeightsRecord, digest: str, at: float) -> tuple[WeightsRevision, ...]:
    """What a record has beside a digest: of what was removed no more than it may have otherwise, the latest."""
    kept = [one for one in record.kept_at(at) if one.digest != digest]
    removed = sorted((one for one in kept if one.removed_at), key=lambda one: one.removed_at, reverse=True)
    gone = {one.digest for one in removed[MOST_REVISIONS:]}
    return tuple(one for one in kept if one.digest not in gone)


def _check_revisions(kept: tuple[WeightsRevision, ...]) -> None:
    if sum(1 for one in kept if not one.removed_at) >= MOST_REVISIONS:
        raise QuotaExceeded(f"These weights were pushed {MOST_REVISIONS} times, which is the most: remove older ones.")


def _signed_as_before(revision: WeightsRevision, record: WeightsRecord) -> WeightsRevision:
    """What is pushed again without a signature keeps the one that it had."""
    before = next((one for one in record.present if one.digest == revision.digest), None)
    if revision.signature or before is None:
        return revision
    return replace(revision, signature=before.signature, signed_by=before.signed_by)


def _info(revision: WeightsRevision, users: dict[str, list[str]], signed: SignatureInfo | None) -> RevisionInfo:
    return RevisionInfo(
        digest=revision.digest,
        files=revision.files,
        size=revision.size,
        pushed_at=revision.pushed_at,
        pushed_by=revision.pushed_by,
        pickles=list(revision.pickles),
        functions=sorted(users.get(revision.digest, ())),
        signed=signed,
    )


def _uses(registry: RegistryPort, tenant: str, at: float) -> Iterator[tuple[str, str]]:
    """(`app.function`, digest) of what functions in service at the unix second `at` use."""
    for app in registry.iter_apps(tenant):
        if app.stopped or app.has_ended(at):
            continue
        for function, version_id in app.functions.items():
            version = registry.version(version_id)
            for artifact in version.artifacts if version is not None else ():
                if artifact.digest:
                    yield f"{app.app}.{function}", artifact.digest
