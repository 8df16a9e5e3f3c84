"""Batches for tests, and a version that they are of."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.records.batches import BatchRecord
from pilotlight_core.model.records.jobs import BlobRef
from pilotlight_core.model.spec import VersionRecord
from tests.builders.specs import version_record
from tests.gateway.world import HELLO, WALL, function


def version(tenant: str = "acme") -> VersionRecord:
    """A function that takes a name."""
    return version_record(function("hello", HELLO, timeout=12.0), tenant=tenant, app="shop", created_at=WALL)


def batch(tenant: str = "acme", **more: Any) -> BatchRecord:
    """A batch that was just stored."""
    fields: dict[str, Any] = {
        "id": "batch_00000000000000000000", "function": f"{tenant}:shop.hello", "version": "ver_1",
        "ref": "shop.hello@v1", "created_at": 1.0, "life_s": 60.0, "expires_at": 61.0, "keep_s": 600.0, "total": 2,
        "chunks": BlobRef("0" * 64, 10),
    }  # fmt: skip
    return BatchRecord(tenant=tenant, **(fields | more))
