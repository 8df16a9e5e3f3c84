"""What the bus has of a tenant, by kind: which keys of which bucket, which subjects of which stream.

Records that a process follows in memory are deleted one by one, since only that leaves a marker from which it hears;
others are purged at once. What stays of API keys is that a holder of certificates was revoked. Each step finds what is
there then, so that it can be repeated after a crash at any point.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from typing import Any

import msgspec
from msgspec.structs import replace

from pilotlight_core.bus import Bus, Kv, NewValue
from pilotlight_core.bus.streams import MARKER_TTL, bucket_stream, key_subject
from pilotlight_core.model import subjects
from pilotlight_core.model.supply.trust_records import TRUST_KEYS
from pilotlight_core.model.tenancy import FunctionShareRecord, KeyRecord

FOLLOWED = {
    "limits": (subjects.TENANCY_BUCKET, "limits.{tenant}"),
    "budgets": (subjects.TENANCY_BUCKET, "budget.{tenant}"),
    "shares of its apps": (subjects.REGISTRY_BUCKET, "share.{tenant}.*"),
    "apps": (subjects.REGISTRY_BUCKET, "app.{tenant}.*"),
    "sizes set by hand": (subjects.REGISTRY_BUCKET, "scale.{tenant}.>"),
    "rollouts": (subjects.REGISTRY_BUCKET, "rollout.{tenant}.*"),
    "weights": (subjects.REGISTRY_BUCKET, "weights.{tenant}.*"),
    "models": (subjects.REGISTRY_BUCKET, "model.{tenant}.*"),
    "files": (subjects.REGISTRY_BUCKET, "file.{tenant}.*"),
    "policies": (subjects.REGISTRY_BUCKET, "policy.{tenant}"),
    "evidence of rollouts": (subjects.EVIDENCE_BUCKET, "{tenant}.>"),
    "batches": (subjects.BATCH_BUCKET, "{tenant}.*"),
    "webhooks": (subjects.WEBHOOK_BUCKET, "{tenant}.*"),
    "what is taken of budgets": (subjects.BUDGET_BUCKET, "home.{tenant}"),
}
"""Kind -> bucket, and keys."""
PURGED = {
    "jobs": (bucket_stream(subjects.JOB_BUCKET), key_subject(subjects.JOB_BUCKET, "{tenant}.*")),
    "places of jobs in queues": (subjects.JOB_STREAM, "jobs.*.*.*.{tenant}.*"),
    "deliveries of webhooks": (
        bucket_stream(subjects.DELIVERY_BUCKET),
        key_subject(subjects.DELIVERY_BUCKET, "{tenant}.>"),
    ),
    "what scaling remembers": (
        bucket_stream(subjects.SCALING_BUCKET),
        key_subject(subjects.SCALING_BUCKET, "*.{tenant}.>"),
    ),
    "pieces of logs": (subjects.LOGS_STREAM, subjects.logs("*", "*", "{tenant}", "*", "*")),
    "events": (subjects.EVENTS_STREAM, subjects.platform_events_of("*", "{tenant}")),
    "compared calls": (subjects.COMPARED_STREAM, subjects.compared("*", "{tenant}", "*")),
    "older pieces of logs": (subjects.LOGS_STREAM, subjects.logs_before_nodes("*", "{tenant}", "*", "*")),
}
"""Kind -> stream, and subjects."""
KEYS, VERSIONS, CURVES, SHARES, SECRETS, ANSWERS, SESSIONS, TRUST = (
    "API keys", "versions", "curves of versions", "shares with it", "secrets", "answers by Idempotency-Key", "sessions",
    "keys of signatures",
)  # fmt: skip


class _Owned(msgspec.Struct, frozen=True, kw_only=True):
    """The field of a record that says whose it is."""

    tenant: str = ""


_owner = msgspec.msgpack.Decoder(_Owned)
_key = msgspec.msgpack.Decoder(KeyRecord)
_share = msgspec.msgpack.Decoder(FunctionShareRecord)
_encoder = msgspec.msgpack.Encoder()


class BusTraces:
    """The `TenantTraces` over the bus."""

    def __init__(self, bus: Bus, wall: Callable[[], float] = time.time) -> None:
        self._bus = bus
        self._wall = wall
        self._tenancy, self._registry = bus.kv(subjects.TENANCY_BUCKET), bus.kv(subjects.REGISTRY_BUCKET)
        self._platform = bus.kv(subjects.PLATFORM_BUCKET)
        self._secrets, self._answers = bus.kv(subjects.SECRET_BUCKET), bus.kv(subjects.IDEMPOTENCY_BUCKET)

    async def count(self, tenant: str) -> Counter[str]:
        found = Counter[str]()
        for kind, (bucket, keys) in FOLLOWED.items():
            found[kind] = len([key async for key in self._bus.kv(bucket).each_key(keys.format(tenant=tenant))])
        for kind, (stream, subject) in PURGED.items():
            found[kind] = sum((await self._bus.jetstream.depths(stream, subject.format(tenant=tenant))).values())
        found[KEYS] = len([key async for key in _owned(self._tenancy, "key.*", tenant)])
        found[SESSIONS] = len([key async for key in _owned(self._tenancy, "session.*", tenant)])
        found[VERSIONS] = len([key async for key in _owned(self._registry, "version.*", tenant)])
        found[SHARES] = len([key async for key in self._shared_with(tenant)])
        found[SECRETS] = len([key async for key in self._secrets.each_key(f"secret.{tenant}.*")])
        found[TRUST] = len([key async for key in self._platform.each_key(f"{TRUST_KEYS}{tenant}")])
        return +found

    async def erase(self, tenant: str) -> Counter[str]:
        found, at = Counter[str](), self._wall()
        # Keys first: whoever has one learns at once that there is nothing for it here.
        for key in [key async for key in _owned(self._tenancy, "key.*", tenant)]:
            await self._tenancy.change(key, lambda data: _ended(data, at))
            found[KEYS] += 1
        sessions = [key async for key in _owned(self._tenancy, "session.*", tenant)]
        found[SESSIONS] = await _delete(self._tenancy, sessions)
        for kind, (bucket, keys) in FOLLOWED.items():
            kv = self._bus.kv(bucket)
            found[kind] = await _delete(kv, [key async for key in kv.each_key(keys.format(tenant=tenant))])
        versions = [key async for key in _owned(self._registry, "version.*", tenant)]
        beside = {f"{kind}.{key.partition('.')[2]}" for key in versions for kind in ("curves", "verdict")}
        present = [
            key for kind in ("curves.*", "verdict.*") async for key in self._registry.each_key(kind) if key in beside
        ]
        await _delete(self._registry, present)
        found[CURVES] = sum(key.startswith("curves.") for key in present)
        found[VERSIONS] = await _delete(self._registry, versions)
        for key in [key async for key in self._shared_with(tenant)]:
            await self._registry.change(key, lambda data: _without(data, tenant))
            found[SHARES] += 1
        for key in [key async for key in self._secrets.each_key(f"secret.{tenant}.*")]:
            await self._secrets.erase(key)
            found[SECRETS] += 1
        for key in [key async for key in self._platform.each_key(f"{TRUST_KEYS}{tenant}")]:
            await self._platform.delete(key)  # markers stay there: the bucket has none that go by themselves
            found[TRUST] += 1
        for kind, (stream, subject) in PURGED.items():
            found[kind] = await self._bus.jetstream.purge(stream, subject=subject.format(tenant=tenant), below=0)
        for key in [key async for key in _owned(self._answers, "*", tenant)]:
            await self._answers.delete(key, ttl=MARKER_TTL)
            found[ANSWERS] += 1
        return +found

    async def _shared_with(self, tenant: str) -> AsyncIterator[str]:
        """The keys of other owners' shares that name it."""
        entries: Any = self._registry.each("share.>")
        async with aclosing(entries):
            async for key, entry in entries:
                with suppress(msgspec.DecodeError):  # a later release's
                    if tenant in _share.decode(entry.value).grants:
                        yield key


def _ended(data: bytes | None, at: float) -> NewValue | None:
    """Nothing in the place of an API key's record; of a certificate's mapping what says that it was revoked.

    So that certificates from before stay worthless when the holder is mapped to another tenant.
    """
    if data is None:
        return None
    with suppress(msgspec.DecodeError):  # a later release's
        if (key := _key.decode(data)).certificate:
            left = replace(
                key, tenant="", scopes=(), label="", revoked=True, revoked_at=(key.revoked and key.revoked_at) or at
            )
            return NewValue(_encoder.encode(left))
    return NewValue(None, MARKER_TTL)


def _without(data: bytes | None, tenant: str) -> NewValue | None:
    """A share's record without a tenant among those who may call."""
    if data is None:
        return None
    share = _share.decode(data)
    grants = {grantee: names for grantee, names in share.grants.items() if grantee != tenant}
    return NewValue(_encoder.encode(replace(share, grants=grants)))


async def _delete(kv: Kv, keys: list[str]) -> int:
    for key in keys:
        await kv.delete(key, ttl=MARKER_TTL)
    return len(keys)


async def _owned(kv: Kv, keys: str, tenant: str) -> AsyncIterator[str]:
    """The keys among `keys` whose record says that it is the tenant's."""
    entries: Any = kv.each(keys)
    async with aclosing(entries):
        async for key, entry in entries:
            try:
                owner = _owner.decode(entry.value).tenant
            except msgspec.DecodeError:  # another kind of record, or a later release's
                continue
            if owner == tenant:
                yield key
