"""What runs is held against its policies again; a new finding is an event, and nothing is ended."""

from __future__ import annotations

from pathlib import Path

import msgspec

from pilotlight_core.bus import Bus
from pilotlight_core.host.blobs import MemoryBlobs
from pilotlight_core.host.events.event_log import MemoryEventLog
from pilotlight_core.host.records.policy_registry import policy_key
from pilotlight_core.host.signing import Signer
from pilotlight_core.host.supply.trust_keys import MemoryTrust
from pilotlight_core.model.ids import token
from pilotlight_core.model.spec import AppRecord
from pilotlight_core.model.subjects import REGISTRY_BUCKET
from pilotlight_core.model.supply.findings import VerdictRecord
from pilotlight_core.model.supply.policies import Policy, PolicyRecord, Severity
from pilotlight_gateway.deploys.deploy_plan import Build, signed_blob, version_record
from pilotlight_gateway.supply.base_inventories import MemoryInventories
from pilotlight_gateway.supply.osv_file import OsvFile
from pilotlight_gateway.supply.policy_duty import PolicyDuty
from pilotlight_gateway.supply.signing_keys import LoneSigner
from pilotlight_gateway.supply.supply_desk import SupplyDesk
from tests.builders.specs import function_spec, id_of, manifest
from tests.builders.supply import AT, BASE, DAY_S, lock_of
from tests.gateway.supply.test_osv_file import TWICE, YAML, export

encode = msgspec.msgpack.encode


async def test_a_vulnerability_that_is_published_later_is_an_event(bus: Bus, tmp_path: Path) -> None:
    """Once; the verdict beside the version is the last one, and a stopped app is not looked at."""
    tenant, kv, blobs, events = f"t{token(8)}", bus.kv(REGISTRY_BUCKET), MemoryBlobs(), MemoryEventLog()
    made = msgspec.structs.replace(manifest(function_spec("rank"), tenant=tenant), lock=lock_of(pyyaml="5.3"))
    signer, book = LoneSigner(Signer.load_or_create(tmp_path / "keys")), _Nothing()
    desk = SupplyDesk(blobs=blobs, policies=book, inventories=MemoryInventories(bases={"default": BASE}))
    review = (await desk.review([made], {}, AT, with_content=True))["rank"]
    signed = await signer.sign(made)
    documents = await desk.documents(made, signed, review, signer, AT)
    digest, data = signed_blob(signed)
    for name, content in ((digest, data), *documents.blobs):
        await blobs.put(tenant, name, content)
    build = Build(manifest=made, version_id=id_of(made), signed_sha256=digest, evidence=documents.info, at=AT)
    version = version_record(build, None)
    app = AppRecord(tenant=tenant, app=made.app, revision=1, functions={"rank": version.id})
    await kv.put(f"version.{version.id}", encode(version))
    await kv.put(f"app.{tenant}.{made.app}", encode(app))
    file, now = export(tmp_path / "all.zip", TWICE), AT
    duty = PolicyDuty(bus, blobs, events, OsvFile(file), trust=MemoryTrust(), wall=lambda: now)
    assert await duty.inspect() == 0

    policy = PolicyRecord(tenant=tenant, policy=Policy(vulnerabilities=Severity.HIGH), revision=1, changed_at=AT)
    await kv.put(policy_key(tenant), encode(policy))
    assert await duty.inspect() == 1
    assert (await duty.inspect(), events.events) == (0, [])

    export(file, TWICE, YAML)
    assert await duty.inspect() == 1
    now = AT + DAY_S
    assert await duty.inspect() == 1
    assert [(each.kind, each.tenant, each.facts["component"]) for each in events.events] == [
        ("policy.found", tenant, "pkg:pypi/pyyaml@5.3")
    ]
    entry = await kv.get(f"verdict.{version.id}")
    assert entry is not None
    stored = msgspec.msgpack.decode(entry.value, type=VerdictRecord)
    assert (stored.tenant, stored.verdict.at, len(stored.verdict.findings)) == (tenant, now, 1)

    await kv.put(f"app.{tenant}.{made.app}", encode(msgspec.structs.replace(app, stopped=True)))
    now = AT + 2 * DAY_S
    assert await duty.inspect() == 0
    for key in (f"app.{tenant}.{made.app}", f"version.{version.id}", f"verdict.{version.id}", policy_key(tenant)):
        await kv.delete(key)


class _Nothing:
    """No policy at the deploy."""

    def policy(self, tenant: str = "") -> None: ...
    async def change_policy(self, tenant: str, change: object) -> None: ...
    def verdict(self, version_id: str) -> None: ...
