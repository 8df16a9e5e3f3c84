"""What the operator sees of the bus of a world: which server leads a stream, which lags, and who holds a lease."""

from __future__ import annotations

import asyncio
from typing import Any

from pilotlight_core.bus import DEFAULT_LIMITS, BusError, bus_users, connect, read_holder
from pilotlight_core.bus.streams import bucket_stream, stream_configs
from pilotlight_core.model.subjects import LEASE_BUCKET
from tests.hosts.host_world import SERVERS, HostWorld

UNKNOWN = "?"
STREAMS = tuple(str(config["name"]) for config in stream_configs(DEFAULT_LIMITS))


def lease_leader(world: HostWorld) -> str:
    """The server that leads the bucket of leases; "": none does now."""
    try:
        (cluster,) = asyncio.run(_clusters(world, bucket_stream(LEASE_BUCKET)))
    except BusError:
        return ""
    return str(cluster.get("leader", ""))


def lease_holder(world: HostWorld, key: str) -> str:
    """Who has a lease; "": nobody, `UNKNOWN`: the bus does not say."""

    async def look() -> str:
        url = world.fleet.bus_url(bus_users.OPERATOR)
        async with connect(url, name="test", ca_file=world.fleet.ca_file, makes_streams=False) as bus:
            entry = await bus.kv(LEASE_BUCKET).get(key)
        return "" if entry is None else read_holder(entry.value, entry.revision).name

    try:
        return asyncio.run(look())
    except BusError:
        return UNKNOWN


def is_whole(world: HostWorld) -> bool:
    """Whether each server has all that each stream has."""
    try:
        clusters = asyncio.run(_clusters(world, *STREAMS))
    except BusError:
        return False
    return all(
        cluster.get("leader")
        and len(cluster["replicas"]) == SERVERS - 1
        and all(each.get("current") and not each.get("offline") and not each.get("lag") for each in cluster["replicas"])
        for cluster in clusters
    )


async def _clusters(world: HostWorld, *streams: str) -> list[dict[str, Any]]:
    url = world.fleet.bus_url(bus_users.OPERATOR)
    async with connect(url, name="test", ca_file=world.fleet.ca_file, makes_streams=False) as bus:
        told = [await bus.jetstream.api(f"STREAM.INFO.{stream}", {}) for stream in streams]
    return [each.cluster or {} for each in told]
