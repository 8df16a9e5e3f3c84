"""The duty that holds versions which run against their policies again: each day, and when a policy, what is known of
vulnerabilities, or the keys by which a version is signed have changed.

What runs is what is in service, what an alias stands for, and the new versions of a rollout. A finding that is new is
told as an event, and the verdict is stored beside the version; nothing is ended. What packages a version has is what
its own bill of materials says, so that no node is asked.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import structlog

from pilotlight_core.bus import Bus, Lease
from pilotlight_core.bus.kv import NewValue
from pilotlight_core.host.blobs import BlobMissing, BlobStore, NoBlobStore
from pilotlight_core.host.events.event_log import EventLog
from pilotlight_core.host.records.policy_registry import MemoryPolicies, policy_key
from pilotlight_core.host.supply.trust_keys import TrustKeys, TrustReader
from pilotlight_core.model.rollouts.rollout_record import RolloutRecord
from pilotlight_core.model.spec import AppRecord, VersionRecord
from pilotlight_core.model.subjects import REGISTRY_BUCKET
from pilotlight_core.model.supply.findings import PolicyVerdict, VerdictRecord
from pilotlight_core.model.supply.policies import POLICY_KEYS, PolicyRecord
from pilotlight_gateway.supply.osv_file import NoOsvFile, OsvFile
from pilotlight_gateway.supply.sbom_packages import SbomInventories, packages_in
from pilotlight_gateway.supply.standing_verdicts import events_of, is_due, new_findings
from pilotlight_gateway.supply.supply_desk import SupplyDesk

LOOK_EVERY_S = 600.0
FIRST_LOOK_S = 60.0
"""After the process has started: others start too."""

log = structlog.get_logger(__name__)
_encoder = msgspec.msgpack.Encoder()


class PolicyDuty:
    """Looks at all that runs."""

    def __init__(
        self,
        bus: Bus,
        blobs: BlobStore,
        events: EventLog,
        osv: OsvFile,
        *,
        trust: TrustReader | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._kv = bus.kv(REGISTRY_BUCKET)
        self._blobs = blobs
        self._events = events
        self._osv = osv
        self._trust = trust or TrustKeys(bus)
        self._wall = wall

    async def inspect_until_cancelled(self, lease: Lease) -> None:
        """Look each time it is time, while the lease holds."""
        await asyncio.sleep(FIRST_LOOK_S)
        while lease.valid(time.monotonic()):
            await self.inspect()
            await asyncio.sleep(LOOK_EVERY_S)

    async def inspect(self) -> int:
        """Look once at all that runs and is due; the number of versions that were looked at. Raises BusError."""
        policies = await self._policies()
        if not policies.records:
            return 0
        data = await self._data_digest()
        looked_at, at = 0, self._wall()
        for version in await self._running():
            before, keys = await self._before(version), await self._keys(version)
            of = {"operator": policies.policy(), "tenant": policies.policy(version.tenant)}
            held = {owner: record for owner, record in of.items() if record is not None}
            revisions = {owner: record.revision for owner, record in held.items()}
            known = data if any(record.policy.needs_data for record in held.values()) else ""
            if held and is_due(before, at, revisions, known, keys):
                await self._judge(version, policies, before, keys, at)
                looked_at += 1
        return looked_at

    async def _judge(
        self, version: VersionRecord, policies: MemoryPolicies, last: VerdictRecord | None, keys: str, at: float
    ) -> None:
        try:
            before = last.verdict if last is not None else await self._at_deploy(version)
            review = await (await self._desk(version, policies)).judged(version, at)
        except (BlobMissing, NoBlobStore, msgspec.DecodeError) as error:
            log.warning("a version cannot be held against its policies", version=version.id, why=str(error))
            return
        found = new_findings(before, review.verdict)
        record = VerdictRecord(version=version.id, tenant=version.tenant, verdict=review.verdict, keys=keys)
        # Stored first: a crash between loses an event, and told twice each day it would be noise.
        await self._kv.change(f"verdict.{version.id}", lambda _: NewValue(_encoder.encode(record)))
        for event in events_of(version, found, at):
            self._events.note(event)

    async def _desk(self, version: VersionRecord, policies: MemoryPolicies) -> SupplyDesk:
        desk = SupplyDesk(blobs=self._blobs, policies=policies, trust=self._trust, osv=self._osv)
        if version.evidence is None:
            return desk
        sbom = await self._document(version, version.evidence.sbom)
        return replace(desk, inventories=SbomInventories(packages_in(sbom)))

    async def _document(self, version: VersionRecord, sha256: str) -> bytes:
        """Raises BlobMissing: also if it is not what its name says."""
        data = await self._blobs.read(version.tenant, sha256)
        if hashlib.sha256(data).hexdigest() != sha256:
            raise BlobMissing(f"The document {sha256[:12]} of {version.id} is damaged.")
        return data

    async def _keys(self, version: VersionRecord) -> str:
        """What the record of keys is that its signatures are held against; "": it has none."""
        if version.evidence is None or not version.evidence.signatures:
            return ""
        return hashlib.sha256(_encoder.encode(await self._trust.read(version.tenant))).hexdigest()

    async def _at_deploy(self, version: VersionRecord) -> PolicyVerdict | None:
        """What its deployer was told."""
        if version.evidence is None:
            return None
        return msgspec.json.decode(await self._document(version, version.evidence.verdict), type=PolicyVerdict)

    async def _before(self, version: VersionRecord) -> VerdictRecord | None:
        entry = await self._kv.get(f"verdict.{version.id}")
        found: VerdictRecord | None = None if entry is None else _read(entry.value, VerdictRecord)
        return found

    async def _policies(self) -> MemoryPolicies:
        found = MemoryPolicies()
        for key, entry in (await self._kv.entries(POLICY_KEYS)).items():
            record = _read(entry.value, PolicyRecord)
            if record is not None and policy_key(record.tenant) == key:
                found.records[record.tenant] = record
        return found

    async def _data_digest(self) -> str:
        try:
            data = await asyncio.to_thread(self._osv.data)
        except NoOsvFile as error:
            log.error("known vulnerabilities cannot be read", why=error.detail)
            return ""
        return "" if data is None else data.sha256

    async def _running(self) -> list[VersionRecord]:
        """The versions that calls reach of apps that are not stopped. A twin is as the version that it is of."""
        wanted, served = set[str](), set[tuple[str, str]]()
        for entry in (await self._kv.entries("app.")).values():
            app = _read(entry.value, AppRecord)
            if app is not None and not app.stopped:
                wanted |= set(app.functions.values())
                served.add((app.tenant, app.app))
        for entry in (await self._kv.entries("rollout.")).values():
            record = _read(entry.value, RolloutRecord)
            if record is not None and (record.tenant, record.app) in served:
                twins = set(record.running.twins.values()) if record.running is not None else set[str]()
                wanted |= record.kept_versions() - twins
        found = [_read((entry.value), VersionRecord) for entry in (await self._kv.entries("version.")).values()]
        return sorted((one for one in found if one is not None and one.id in wanted), key=lambda one: one.id)


def _read(data: bytes, kind: Any) -> Any:
    """A record; None: a later release has written it."""
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except msgspec.DecodeError:
        return None
