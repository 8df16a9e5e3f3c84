"""A data key that is destroyed is in no file of the bus any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_core.bus import bus_users, connect
from pilotlight_core.model.subjects import BLOB_KEY_BUCKET, SECRET_BUCKET
from pilotlight_gateway.secrets.bus_data_keys import BusDataKeys
from pilotlight_gateway.secrets.secret_records import DataKeyRecord
from pilotlight_supervisor.embedded_bus import embedded_nats
from tests.gateway.secrets.makers import AT

SEALED = b"the sealed bytes of a key that is destroyed"


def found(folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if SEALED in path.read_bytes()]


@pytest.mark.parametrize("bucket", [BLOB_KEY_BUCKET, SECRET_BUCKET])
async def test_a_destroyed_key_is_overwritten_on_disk(tmp_path: Path, bucket: str, anyio_backend: str) -> None:
    """Others beside it stay."""
    user = bus_users.gateway()
    async with (
        embedded_nats(tmp_path) as server,
        connect(server.url_of(user.name), name="test", inbox=user.inbox) as bus,
    ):
        store = BusDataKeys(bus, bucket)
        for tenant in ("acme", "rival"):
            sealed = SEALED if tenant == "acme" else b"another"
            record = DataKeyRecord(tenant=tenant, id="dk_1", platform_key="memory:1", sealed=sealed, created_at=AT)
            await store.replace_data_key(record, "")
        assert found(tmp_path)

        await store.erase_data_key("acme")

        assert found(tmp_path) == []
        assert await store.data_key("rival") is not None
