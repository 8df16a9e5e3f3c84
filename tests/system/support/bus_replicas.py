"""Whether the servers of a bus have what they should, as a rolling restart waits for."""

from __future__ import annotations

import asyncio

from pilotlight_core.bus import BusError, connect


def are_caught_up(url: str) -> bool:
    """Whether every stream has a leader, and all of its copies are current."""
    try:
        return asyncio.run(_are_caught_up(url))
    except BusError:
        return False


async def _are_caught_up(url: str) -> bool:
    async with connect(url, name="test", makes_streams=False) as bus:
        for name in await bus.jetstream.names():
            found = (await bus.jetstream.api(f"STREAM.INFO.{name}", {})).cluster or {}
            copies = found.get("replicas") or ()
            if not found.get("leader") or any(one.get("offline") or not one.get("current") for one in copies):
                return False
    return True
