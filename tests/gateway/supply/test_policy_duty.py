"""What runs is held against its policies again; a new finding is an event, and nothing is ended."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilotlight.packing.folder_signing import CODE, FolderSigner
from pilotlight_core.bus import Bus
from pilotlight_core.host.blobs import MemoryBlobs
from pilotlight_core.host.events.event_log import MemoryEventLog
from pilotlight_core.host.records.policy_registry import MemoryPolicies, policy_key
from pilotlight_core.host.signing import Signer
from pilotlight_core.host.supply.tenant_signatures import signed_parts
from pilotlight_core.host.supply.trust_keys import MemoryTrust
from pilotlight_core.model.ids import token
from pilotlight_core.model.rollouts.rollout_moves import started
from pilotlight_core.model.rollouts.rollout_record import RolloutRecord
from pilotlight_core.model.spec import AppRecord, VersionRecord
from pilotlight_core.model.subjects import REGISTRY_BUCKET
from pilotlight_core.model.supply.findings import VerdictRecord
from pilotlight_core.model.supply.key_terms import KeyTerms
from pilotlight_core.model.supply.policies import Policy, PolicyMode, PolicyRecord, Severity
from pilotlight_gateway.deploys.deploy_plan import Build, signed_blob, version_record
from pilotlight_gateway.supply.base_inventories import MemoryInventories
from pilotlight_gateway.supply.osv_file import OsvFile
from pilotlight_gateway.supply.policy_duty import PolicyDuty
from pilotlight_gateway.supply.signing_keys import LoneSigner
from pilotlight_gateway.supply.supply_desk import SupplyDesk
from tests.builders.specs import function_spec, id_of, manifest
from tests.builders.supply import AT, BASE, DAY_S, lock_of, signing_key, trusting
from tests.gateway.rollouts.kept_rollout import rollout
from tests.gateway.supply.test_osv_file import TWICE, YAML, export

encode = msgspec.msgpack.encode


@dataclass
class Shop:
    """An app of a tenant of its own, over a real bus, and the duty that looks at it."""

    bus: Bus
    folder: Path
    tenant: str = field(default_factory=lambda: f"t{token(8)}")
    now: float = AT

    def __post_init__(self) -> None:
        self.kv, self.blobs, self.events, self.trust = (
            self.bus.kv(REGISTRY_BUCKET), MemoryBlobs(), MemoryEventLog(), MemoryTrust(),
        )  # fmt: skip
        self.osv = export(self.folder / "all.zip", TWICE)
        self.duty = PolicyDuty(
            self.bus, self.blobs, self.events, OsvFile(self.osv), trust=self.trust, wall=lambda: self.now
        )
        self.keys: list[str] = []

    async def put(self, key: str, record: Any) -> None:
        self.keys.append(key)
        await self.kv.put(key, encode(record))

    async def policy(self, revision: int = 1, **rules: Any) -> None:
        record = PolicyRecord(tenant=self.tenant, policy=Policy(**rules), revision=revision, changed_at=AT)
        await self.put(policy_key(self.tenant), record)

    async def version(self, pin: str = "5.3", signer: FolderSigner | None = None) -> VersionRecord:
        """As a deploy stores it, when there was no policy."""
        made = manifest(function_spec("rank"), tenant=self.tenant, app="shop")
        made = msgspec.structs.replace(made, lock=lock_of(pyyaml=pin))
        platform = LoneSigner(Signer.load_or_create(self.folder / "keys"))
        desk = SupplyDesk(
            blobs=self.blobs, policies=MemoryPolicies(), inventories=MemoryInventories(bases={"default": BASE}),
            trust=self.trust,
        )  # fmt: skip
        text = {} if signer is None else {CODE: signer.sign(CODE, signed_parts(made, CODE), 2**20)}
        review = (await desk.review([made], {"rank": text}, AT, with_content=True))["rank"]
        signed = await platform.sign(made)
        documents = await desk.documents(made, signed, review, platform, AT)
        digest, data = signed_blob(signed)
        for name, content in ((digest, data), *documents.blobs):
            await self.blobs.put(self.tenant, name, content)
        build = Build(manifest=made, version_id=id_of(made), signed_sha256=digest, evidence=documents.info, at=AT)
        version = version_record(build, None)
        await self.put(f"version.{version.id}", version)
        return version

    async def serve(self, version: VersionRecord, *, stopped: bool = False) -> None:
        app = AppRecord(tenant=self.tenant, app="shop", revision=1, functions={"rank": version.id}, stopped=stopped)
        await self.put(f"app.{self.tenant}.shop", app)

    @property
    def told(self) -> list[tuple[str, str]]:
        """The rule and the version of each event."""
        assert {each.kind for each in self.events.events} <= {"policy.found"}
        return [(str(each.facts["rule"]), str(each.facts["version"])) for each in self.events.events]


@asynccontextmanager
async def shop_on(bus: Bus, folder: Path) -> AsyncIterator[Shop]:
    shop = Shop(bus, folder)
    try:
        yield shop
    finally:
        for key in {*shop.keys, *(f"verdict.{key.partition('.')[2]}" for key in shop.keys)}:
            await shop.kv.delete(key)


async def test_a_vulnerability_that_is_published_later_is_an_event(bus: Bus, tmp_path: Path) -> None:
    """Once; the verdict beside the version is the last one, and a stopped app is not looked at."""
    async with shop_on(bus, tmp_path) as shop:
        version = await shop.version()
        await shop.serve(version)
        assert await shop.duty.inspect() == 0

        await shop.policy(vulnerabilities=Severity.HIGH)
        assert await shop.duty.inspect() == 1
        assert (await shop.duty.inspect(), shop.told) == (0, [])

        export(shop.osv, TWICE, YAML)
        assert await shop.duty.inspect() == 1
        shop.now = AT + DAY_S
        assert await shop.duty.inspect() == 1
        assert shop.told == [("vulnerability", version.id)]
        assert shop.events.events[0].facts["component"] == "pkg:pypi/pyyaml@5.3"
        entry = await shop.kv.get(f"verdict.{version.id}")
        assert entry is not None
        stored = msgspec.msgpack.decode(entry.value, type=VerdictRecord)
        assert (stored.tenant, stored.verdict.at, len(stored.verdict.findings)) == (shop.tenant, shop.now, 1)

        await shop.serve(version, stopped=True)
        shop.now = AT + 2 * DAY_S
        assert await shop.duty.inspect() == 0


async def test_a_package_that_is_denied_later_is_an_event_also_of_canaries_and_aliases(
    bus: Bus, tmp_path: Path
) -> None:
    """What calls reach is looked at, whatever brings them there; again when it is enforced. Twins are not told of."""
    async with shop_on(bus, tmp_path) as shop:
        old, canary, alias, twin, other = [await shop.version(f"5.{number}") for number in range(5)]
        await shop.serve(old)
        running = rollout(control={"rank": old.id}, canary={"rank": canary.id}, twins={"rank": twin.id})
        record = started(RolloutRecord(tenant=shop.tenant, app="shop", revision=1), shop.tenant, "shop", running)
        record = msgspec.structs.replace(record, aliases={"rank": {"prod": alias.id}})
        await shop.put(f"rollout.{shop.tenant}.shop", record)

        await shop.policy(deny_packages=("pyyaml<6",))
        assert await shop.duty.inspect() == 3
        assert set(shop.told) == {("package", each.id) for each in (old, canary, alias)}
        assert ("package", other.id) not in shop.told

        await shop.policy(2, deny_packages=("pyyaml<6",), mode=PolicyMode.ENFORCE)
        assert await shop.duty.inspect() == 3
        assert len(shop.told) == 6
        assert all(each.facts["enforced"] for each in shop.events.events[3:])


async def test_a_key_that_is_revoked_is_told_where_a_policy_asks_for_signatures(bus: Bus, tmp_path: Path) -> None:
    """At the next look, and not on the next day: no container of the version starts any more."""
    signer = signing_key()
    async with shop_on(bus, tmp_path) as shop:
        shop.trust.records[shop.tenant] = trusting(signer, tenant=shop.tenant)
        version = await shop.version(signer=signer)
        await shop.serve(version)
        await shop.policy(signed=True)
        assert (await shop.duty.inspect(), await shop.duty.inspect(), shop.told) == (1, 0, [])

        terms = KeyTerms(revoked_at=AT, reason="stolen")
        shop.trust.records[shop.tenant] = trusting(signer, tenant=shop.tenant, terms=terms)
        assert (await shop.duty.inspect(), await shop.duty.inspect()) == (1, 0)
        assert shop.told == [("signature", version.id)]
        assert "was revoked on" in shop.events.events[0].says


@pytest.mark.parametrize("how", ["taken off", "changed"])
async def test_a_version_without_its_documents_does_not_pass_for_one_with_nothing_to_find(
    bus: Bus, tmp_path: Path, how: str
) -> None:
    """Whoever takes them off the record is told of; what is in the store and not what its name says is not read."""
    async with shop_on(bus, tmp_path) as shop:
        version = await shop.version()
        await shop.serve(version)
        await shop.policy(deny_packages=("numpy",))
        assert version.evidence is not None
        if how == "changed":
            shop.blobs.kept[shop.tenant, version.evidence.sbom] = b'{"components": []}'
            await shop.duty.inspect()
            assert await shop.kv.get(f"verdict.{version.id}") is None
            return
        await shop.put(f"version.{version.id}", msgspec.structs.replace(version, evidence=None))
        await shop.duty.inspect()
        assert shop.told == [("base", version.id)]
