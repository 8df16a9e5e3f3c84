"""Moves the records of tenants out of the bucket of deploys, in which earlier versions kept them."""

from __future__ import annotations

import contextlib

import structlog

from pilotlight_core.bus import Bus, KeyExists
from pilotlight_core.bus.streams import MARKER_TTL
from pilotlight_core.host.records.registry_records import TENANCY
from pilotlight_core.model.subjects import REGISTRY_BUCKET, TENANCY_BUCKET

log = structlog.get_logger(__name__)


async def move_tenancy(bus: Bus) -> int:
    """Move what is in the wrong bucket; returns the number of records.

    A record that has been moved is newer than what it was moved from, so it stays. It may be interrupted and repeated.
    """
    source, target = bus.kv(REGISTRY_BUCKET), bus.kv(TENANCY_BUCKET)
    moved = 0
    for kind in TENANCY:
        for key, entry in (await source.entries(f"{kind}.")).items():
            with contextlib.suppress(KeyExists):
                await target.create(key, entry.value)
            await source.delete(key, ttl=MARKER_TTL)
            moved += 1
    if moved:
        log.info("records of tenants were moved to a bucket of their own", records=moved)
    return moved
