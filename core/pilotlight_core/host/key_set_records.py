"""The set of keys of a region, as a record on the bus: see `key_sets`, which those read that never reach the bus."""

from __future__ import annotations

import msgspec

from pilotlight_core.bus import Bus
from pilotlight_core.bus.kv import NewValue
from pilotlight_core.host.key_sets import SignedKeySet, newest_set
from pilotlight_core.model.subjects import PLATFORM_BUCKET


class KeySets:
    """The record of a region."""

    def __init__(self, bus: Bus, *, region: str) -> None:
        self._kv = bus.kv(PLATFORM_BUCKET)
        self._key = f"keys.{region}"

    async def read(self) -> SignedKeySet | None:
        """None: the platform has one gateway's key, and no set. Raises BusError."""
        entry = await self._kv.get(self._key)
        return None if entry is None else msgspec.msgpack.decode(entry.value, type=SignedKeySet)

    async def offer(self, offered: SignedKeySet, *, adopt: bool = False) -> None:
        """Write it down, unless there is a later one.

        Raises:
            BadSignature: see `newest_set`. BusError.
        """

        def changed(value: bytes | None) -> NewValue | None:
            present = None if value is None else msgspec.msgpack.decode(value, type=SignedKeySet)
            chosen = newest_set(present, offered, adopt=adopt)
            return None if chosen == present else NewValue(msgspec.msgpack.encode(chosen))

        await self._kv.change(self._key, changed)
