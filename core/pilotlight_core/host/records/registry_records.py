"""The registry's records over live mirrors of its two buckets.

What the platform cannot do without (tenants, tiers, limits, keys, issuers, nodes, pools) is in a bucket of its own, so
that it can be written however full the bucket is in which tenants' deploys are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

import msgspec
import structlog

from pilotlight_core.bus import Bus, Kv, KvEntry, Mirror, NewValue
from pilotlight_core.bus.streams import MARKER_TTL
from pilotlight_core.model.api.curve_api import CurvesRecord
from pilotlight_core.model.errors import Conflict
from pilotlight_core.model.limits import Tier
from pilotlight_core.model.money.budgets import BilledBudgets, BudgetsRecord, HomeTranches
from pilotlight_core.model.money.credits import CreditsRecord
from pilotlight_core.model.price_book import PriceRecord
from pilotlight_core.model.records.files import FileRecord
from pilotlight_core.model.records.issuers import IssuerRecord
from pilotlight_core.model.records.nodes import JoinTokenRecord, NodeRecord
from pilotlight_core.model.records.pools import LaunchRecord, PoolRecord
from pilotlight_core.model.records.sessions import SessionRecord
from pilotlight_core.model.rollouts.rollout_record import RolloutRecord
from pilotlight_core.model.scaling.scale_record import ScaleRecord
from pilotlight_core.model.served.model_records import ModelRecord
from pilotlight_core.model.spec import AppRecord, VersionRecord
from pilotlight_core.model.subjects import REGISTRY_BUCKET, TENANCY_BUCKET
from pilotlight_core.model.supply.findings import VerdictRecord
from pilotlight_core.model.supply.policies import PolicyRecord
from pilotlight_core.model.tenancy import FunctionShareRecord, KeyRecord, LimitsRecord, TenantRecord
from pilotlight_core.model.versions.pushed_weights import WeightsRecord

TENANCY: dict[str, type[msgspec.Struct]] = {
    "tenant": TenantRecord, "tier": Tier, "limits": LimitsRecord, "key": KeyRecord, "budget": BudgetsRecord,
    "credit": CreditsRecord, "node": NodeRecord, "join": JoinTokenRecord, "issuer": IssuerRecord,
    "pool": PoolRecord, "launch": LaunchRecord, "session": SessionRecord,
}  # fmt: skip
DEPLOYED: dict[str, type[msgspec.Struct]] = {
    "app": AppRecord, "share": FunctionShareRecord, "version": VersionRecord, "curves": CurvesRecord,
    "price": PriceRecord, "scale": ScaleRecord, "weights": WeightsRecord,
    "model": ModelRecord, "file": FileRecord, "rollout": RolloutRecord, "policy": PolicyRecord,
    "verdict": VerdictRecord,
}  # fmt: skip
FEW = frozenset({"pool", "launch"})
"""Kinds of which a controller asks for all, twice a second."""
BUDGETS: dict[str, type[msgspec.Struct]] = {"home": HomeTranches, "ledger": BilledBudgets}
"""Of the bucket of that name, which is no part of the registry."""
_encoder = msgspec.msgpack.Encoder()
_decoders: dict[str, msgspec.msgpack.Decoder[Any]] = {
    kind: msgspec.msgpack.Decoder(cls) for kind, cls in (TENANCY | DEPLOYED).items()
}
R = TypeVar("R", bound=msgspec.Struct)
W = TypeVar("W", bound=msgspec.Struct | None)
OnRecord = Callable[[str, Any], None]
"""(key, record): the new or changed record; None: it is gone."""

log = structlog.get_logger(__name__)


class _Bucket(NamedTuple):
    kv: Kv
    mirror: Mirror


class RegistryRecords:
    """Records by key; an async context manager, which reads all of them on entry.

    `on_change` is called from the read loop for each changed record.
    """

    def __init__(self, bus: Bus, on_change: OnRecord) -> None:
        self._tenancy, self._deployed = (
            _Bucket(bus.kv(name), bus.mirror(name)) for name in (TENANCY_BUCKET, REGISTRY_BUCKET)
        )
        for bucket in (self._tenancy, self._deployed):
            bucket.mirror.on_change.append(self._changed)
        self._on_change = on_change
        self._records: dict[str, Any] = {}
        self._few: dict[str, dict[str, Any]] = {kind: {} for kind in FEW}
        """By kind, of those that are asked for often: a hundred thousand others stand beside them."""
        self._sizes: dict[str, tuple[str, int]] = {}
        """By key of what a tenant deployed, the tenant and the bytes."""
        self._bytes: dict[str, int] = {}
        self._mirrors = AsyncExitStack()

    async def __aenter__(self) -> RegistryRecords:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._tenancy.mirror)
            await stack.enter_async_context(self._deployed.mirror)
            self._mirrors = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._mirrors.__aexit__(kind, error, trace)

    def fresh(self, at: float) -> bool:
        return self._tenancy.mirror.fresh(at) and self._deployed.mirror.fresh(at)

    def age(self, at: float) -> float:
        return max(self._tenancy.mirror.age(at), self._deployed.mirror.age(at))

    @property
    def present(self) -> Mapping[str, Any]:
        """A live view."""
        return self._records

    def bytes_of(self, tenant: str) -> int:
        """The bytes of what the tenant has deployed: all of `DEPLOYED` but prices."""
        return self._bytes.get(tenant, 0)

    def revision(self, key: str) -> int:
        """The revision of the record in memory; 0: there is none."""
        entry = self._bucket(key).mirror.get(key)
        return entry.revision if entry is not None else 0

    def get(self, key: str, _cls: type[R]) -> R | None:
        record: R | None = self._records.get(key)
        return record

    def each(self, prefix: str, _cls: type[R]) -> Iterator[R]:
        if (few := self._few.get(prefix.removesuffix("."))) is not None:
            return iter(list(few.values()))
        return iter([record for key, record in self._records.items() if key.startswith(prefix)])

    async def fetch(self, key: str, cls: type[R]) -> R | None:
        """The record, from the bus if memory lacks it."""
        if key not in self._records:
            await self._bucket(key).mirror.fetch(key)
        return self.get(key, cls)

    async def read(self, key: str, cls: type[R]) -> tuple[R | None, int]:
        """The record from the bus, and its revision there (0: there is none)."""
        entry = await self._bucket(key).mirror.fetch(key)
        return self.get(key, cls), entry.revision if entry is not None else 0

    async def put(self, key: str, record: msgspec.Struct) -> None:
        bucket = self._bucket(key)
        await bucket.kv.put(key, _encoder.encode(record))
        await bucket.mirror.fetch(key)

    async def replace(self, key: str, record: msgspec.Struct, revision: int) -> None:
        """Write the record over the one with that revision (0: there is none).

        Raises:
            KeyConflict: it has another one.
        """
        bucket, data = self._bucket(key), _encoder.encode(record)
        try:
            await (bucket.kv.update(key, data, revision) if revision else bucket.kv.create(key, data))
        finally:
            await bucket.mirror.fetch(key)

    async def remove(self, key: str, revision: int | None = None) -> None:
        """Delete the record; with `revision` only if it has that one.

        Raises:
            KeyConflict: it has another one.
        """
        bucket = self._bucket(key)
        try:
            await bucket.kv.delete(key, revision, ttl=MARKER_TTL)
        finally:
            await bucket.mirror.fetch(key)

    async def change(self, key: str, change: Callable[[Any], W]) -> W:
        """Write what `change` makes of the present record (None: there is none; it is deleted).

        Raises:
            Conflict: the present record cannot be read, and would be lost: a later release has written it.
        """
        wanted: W
        bucket = self._bucket(key)

        def changed(data: bytes | None) -> NewValue | None:
            nonlocal wanted
            present = _decoded(key, data)
            if data and present is None:
                raise Conflict(f"The record {key} was written by a later release: change it with that one.")
            wanted = change(present)
            if wanted == present:
                return None
            return NewValue(None, MARKER_TTL) if wanted is None else NewValue(_encoder.encode(wanted))

        await bucket.kv.change(key, changed)
        await bucket.mirror.fetch(key)
        return wanted

    def _bucket(self, key: str) -> _Bucket:
        return self._tenancy if key.partition(".")[0] in TENANCY else self._deployed

    def _changed(self, key: str, entry: KvEntry | None) -> None:
        record = _decoded(key, entry.value if entry is not None else None)
        few = self._few.get(key.partition(".")[0])
        for records in (self._records, few) if few is not None else (self._records,):
            if record is None:
                records.pop(key, None)
            else:
                records[key] = record
        self._count(key, record, len(entry.value) if entry is not None else 0)
        self._on_change(key, record)

    def _count(self, key: str, record: Any, size: int) -> None:
        tenant, before = self._sizes.pop(key, ("", 0))
        if before:
            self._bytes[tenant] -= before
        if record is not None and (owner := self._deployed_by(key, record)):
            self._sizes[key] = (owner, size)
            self._bytes[owner] = self._bytes.get(owner, 0) + size
        if tenant and not self._bytes[tenant]:
            del self._bytes[tenant]

    def _deployed_by(self, key: str, record: Any) -> str:
        """The tenant with whose deploys the record counts; "": it is none of them."""
        kind, _, name = key.partition(".")
        if kind == "curves":  # they are written after their version
            version: VersionRecord | None = self._records.get(f"version.{name}")
            return version.tenant if version is not None else ""
        return record.tenant if kind in DEPLOYED and kind != "price" else ""


def _decoded(key: str, data: bytes | None) -> Any:
    """The record of a key; None if there is none, or it cannot be decoded."""
    kind = key.partition(".")[0]
    if data is not None and kind in _decoders:
        try:
            return _decoders[kind].decode(data)
        except msgspec.DecodeError as error:
            log.error("a registry record cannot be read", key=key, error=str(error))
    return None
