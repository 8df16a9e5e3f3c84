"""A gateway's part in erasing tenants: over a bus, with what it shares with secrets and blobs."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pilotlight_core.bus import Bus
from pilotlight_core.host.binding_book import BindingBook, MemoryBindings
from pilotlight_core.host.registry import Registry
from pilotlight_core.model.api.erasure_api import ErasureState
from pilotlight_core.model.ids import token
from pilotlight_core.model.subjects import BLOB_KEY_BUCKET, SECRET_BUCKET
from pilotlight_core.model.tenancy import TenantRecord
from pilotlight_gateway.gateway_erasure import GatewayErasure
from pilotlight_gateway.gateway_secrets import GatewaySecrets
from pilotlight_gateway.secrets.bus_data_keys import BusDataKeys
from pilotlight_gateway.secrets.secret_service import set_secret
from pilotlight_gateway.settings import ServeSettings
from pilotlight_gateway.tenancy.auth import Principal
from tests.gateway.secrets.makers import AT, VALUE
from tests.gateway.test_gateway_secrets import Known

SHA = hashlib.sha256(b"content").hexdigest()


async def test_what_a_gateway_erases_is_gone(bus: Bus, tmp_path: Path) -> None:
    """Both data keys of the tenant, its secrets and its blobs; and nothing is stored for it any more."""
    tenant, region = f"t{token(8)}".lower(), f"r{token(8)}".lower()
    settings = ServeSettings(state_dir=tmp_path, region=region, adopt="secrets_key", encrypt_blobs=True)
    operator = Principal(tenant="ops", key_id="k1", scopes=frozenset({"operator"}))
    async with Registry(bus) as registry, BindingBook(bus, region=region) as bindings:
        secrets = GatewaySecrets(settings, bus, registry, Known(bindings=MemoryBindings()))
        erasure = GatewayErasure(bus, registry, bindings, secrets, region=region)
        async with secrets.running(), erasure.running():
            await registry.put_tenant(TenantRecord(name=tenant, created_at=1.0))
            await set_secret(secrets.vault, tenant, "token", VALUE, by="k1", at=AT)
            await secrets.sealing.blobs.put(tenant, SHA, b"content")
            planned = await erasure.eraser.plan(operator, tenant)
            done = await erasure.eraser.erase(operator, tenant, planned.confirmation)

            assert planned.found == {"secrets": 1, "blobs": 1, "data keys": 2}
            assert done.state is ErasureState.ERASED
            assert done.found == {"secrets": 1, "blobs": 1, "data keys": 2}
            for bucket in (SECRET_BUCKET, BLOB_KEY_BUCKET):
                mark = await BusDataKeys(bus, bucket).data_key(tenant)
                assert mark is not None
                assert mark.is_destroyed
            assert await secrets.store.secret(tenant, "token") is None
            assert await secrets.sealing.blobs.stored(tenant, [SHA]) == {}
            assert await secrets.sealing.keys.find(tenant) is None
